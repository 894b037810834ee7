import type { Message } from '@swefarm/shared';
import { PolicyConfig } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { refusesPictures, wireMessage, withNamedPictures } from './parts.ts';
import { chatBody } from './request.ts';

const file = { media_type: 'image/png', sha256: '0'.repeat(64), bytes: 3, data: 'QUJD' } as const;
const shown: Message = {
  role: 'user',
  content: 'It breaks.',
  pictures: [{ address: 'https://x.example/a.png', file }, { address: 'https://x.example/lost.png' }],
};

test('pictures become parts after the text, and the original message is unchanged', () => {
  expect(wireMessage(shown)).toEqual({
    role: 'user',
    content: [
      { type: 'text', text: 'It breaks.' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,QUJD' } },
    ],
  });
  expect(shown.content).toBe('It breaks.');
  const config = PolicyConfig.parse({ urls: [], model: 'm' });
  const [system, user] = [{ role: 'system', content: 'Help.' } as const, shown];
  const body = JSON.parse(chatBody(config, [system, user], [], null, {}).join(''));
  expect(body.messages).toEqual([system, wireMessage(user)]);
});

test("a message without the farm's own pictures is sent unchanged", () => {
  const foreign: Message = { role: 'assistant', content: 'Yes.', pictures: [{ address: 'a', file }] };
  expect(wireMessage(foreign)).toBe(foreign);
  const odd = { role: 'user', content: 'x', pictures: 'none' } as unknown as Message;
  expect(wireMessage(odd)).toBe(odd);
});

test('the text form of a message names each picture', () => {
  expect(withNamedPictures(shown)).toEqual({
    role: 'user',
    content: 'It breaks.\n[picture image/png, 3 bytes: https://x.example/a.png]',
  });
});

test.each([
  'At most 0 image(s) may be provided in one prompt.',
  'Qwen3-8B is not a multimodal model',
  '400 Invalid content type. image_url is only supported by certain models.',
  'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj',
  'This model does not support image input.',
])('a server that cannot look at pictures says: %s', (text) => {
  expect(refusesPictures(text)).toBe(true);
});

test.each([
  "This model's maximum context length is 4096 tokens",
  'unknown field top_k',
  'the model m does not exist',
])('no word about pictures: %s', (text) => {
  expect(refusesPictures(text)).toBe(false);
});
