/** Tries whether an endpoint takes a picture, as a run with pictures would send it. */

import { PICTURES_REMEDY, refusesPictures, wireMessage } from '@swefarm/policy';
import type { Finding, Message } from '@swefarm/shared';
import { fail, ok, warn } from './finding.ts';
import { type Asked, ask, type ProbeOptions } from './probe.ts';

/** A white square of 64 x 64: some models refuse smaller ones. */
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

/** `fail` only where the endpoint answers text and refuses a picture. Never throws for what the endpoint does. */
export async function probePictures(
  url: string,
  model: string,
  options: Omit<ProbeOptions, 'model'>,
): Promise<Finding> {
  const put = (message: Message): Promise<Asked<unknown>> =>
    ask(url, options, async (client, signal): Promise<unknown> => {
      const body = { model, messages: [wireMessage(message)], ...options.sampling, max_tokens: 4 };
      const answer = await client.postWhole('chat', [JSON.stringify(body)], signal);
      return JSON.parse(answer.toString('utf8'));
    });
  const shown = await put(WITH_PICTURE);
  if ('answer' in shown) return ok('pictures', `${model} takes them`);
  const refused = refusesPictures(shown.problem) || 'answer' in (await put(QUESTION));
  return refused
    ? fail('pictures', `${model} refuses a picture: ${shown.problem}`, PICTURES_REMEDY)
    : warn('pictures', `could not be tried: ${shown.problem}`, shown.remedy);
}
