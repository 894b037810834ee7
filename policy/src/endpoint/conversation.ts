/** Encodes the messages of a conversation for requests. Each message is encoded only once. */
import type { Message } from '@swefarm/shared';
import { wireMessage } from './parts.ts';

const OPENING = Buffer.from('{"messages":[');
const FIRST_BYTES = 16 * 1024;

export type EncodedConversation = {
  /**
   * Returns the body of a request up to the last message, without the closing bracket. Later calls do not change the returned bytes.
   *
   * @param messages the unchanged messages of the previous call, followed by new ones; otherwise all messages are encoded again
   */
  opening(messages: readonly Message[]): Buffer;
};

export function encodeConversation(): EncodedConversation {
  let bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  let length = 0;
  let count = 0;
  let last: Message | undefined;
  const append = (text: string): void => {
    const needed = length + Buffer.byteLength(text);
    if (needed > bytes.length) {
      // A request may still be sending the bytes of the smaller buffer.
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, Math.ceil(bytes.length * 1.5)));
      bytes.copy(larger, 0, 0, length);
      bytes = larger;
    }
    length += bytes.write(text, length, 'utf8');
  };
  return {
    opening(messages) {
      if (count === 0 || count > messages.length || messages[count - 1] !== last) {
        bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
        length = OPENING.copy(bytes);
        count = 0;
      }
      for (; count < messages.length; count++) {
        last = messages[count] as Message;
        append(`${count > 0 ? ',' : ''}${JSON.stringify(wireMessage(last))}`);
      }
      return bytes.subarray(0, length);
    },
  };
}
