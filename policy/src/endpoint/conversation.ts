/** Encodes the messages of a conversation for requests. Each message is encoded only once. */
import type { Message } from '@swefarm/shared';
import { GrowableText } from '../tokens/growable.ts';
import { wireMessage } from './parts.ts';

export type EncodedConversation = {
  /**
   * Returns the body of a request up to the last message, without the closing bracket. Later calls do not change the returned bytes.
   *
   * @param messages the unchanged messages of the previous call, followed by new ones; otherwise all messages are encoded again
   */
  opening(messages: readonly Message[]): Buffer;
};

export function encodeConversation(): EncodedConversation {
  let encoded = new GrowableText();
  let count = 0;
  let last: Message | undefined;
  return {
    opening(messages) {
      if (count === 0 || count > messages.length || messages[count - 1] !== last) {
        encoded = new GrowableText();
        encoded.append('{"messages":[');
        count = 0;
      }
      for (; count < messages.length; count++) {
        last = messages[count] as Message;
        encoded.append(`${count > 0 ? ',' : ''}${JSON.stringify(wireMessage(last))}`);
      }
      return encoded.bytes;
    },
  };
}
