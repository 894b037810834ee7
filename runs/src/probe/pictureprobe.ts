/** Tests whether an endpoint accepts a picture. */

import { PICTURES_REMEDY, refusesPictures, wireMessage } from '@swefarm/policy';
import type { Finding, Message } from '@swefarm/shared';
import { fail, ok, warn } from './finding.ts';
import { type Asked, askChat, type ProbeOptions } from './probe.ts';

/** A white PNG of 64 x 64 pixels, because some models refuse smaller pictures. */
const SQUARE =
  'iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAS0lEQVR42u3PMQ0AAAwDoPo33UrYvQQckD4XAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAYHLAMpT0sIcNbcEAAAAAElFTkSuQmCC';

const QUESTION: Message = { role: 'user', content: 'Which colour is this? Answer with one word.' };
const WITH_PICTURE: Message = {
  ...QUESTION,
  pictures: [
    {
      address: 'probe',
      file: {
        media_type: 'image/png',
        sha256: '',
        bytes: Buffer.from(SQUARE, 'base64').length,
        data: SQUARE,
      },
    },
  ],
};

/** Returns `fail` only when the endpoint answers text and refuses a picture. Never throws for faults of the endpoint. */
export async function probePictures(
  url: string,
  model: string,
  options: Omit<ProbeOptions, 'model'>,
): Promise<Finding> {
  const post = (message: Message): Promise<Asked<unknown>> =>
    askChat(url, options, { model, messages: [wireMessage(message)], ...options.sampling, max_tokens: 4 });
  const asked = await post(WITH_PICTURE);
  if ('answer' in asked) return ok('pictures', `${model} takes them`);
  const refused = refusesPictures(asked.problem) || 'answer' in (await post(QUESTION));
  return refused
    ? fail('pictures', `${model} refuses a picture: ${asked.problem}`, PICTURES_REMEDY)
    : warn('pictures', `could not be tried: ${asked.problem}`, asked.remedy);
}
