import { expect, test } from 'vitest';
import { PICTURE_TYPES, picturesRefusedBy, pictureTypeOf } from './picture.ts';

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');

test.each([
  ['\x89PNG\r\n\x1a\n....', 'image/png'],
  ['\xff\xd8\xff\xe0....JFIF', 'image/jpeg'],
  ['GIF89a....', 'image/gif'],
  ['GIF87a....', 'image/gif'],
  ['RIFF....WEBPVP8 ', 'image/webp'],
])('%j is %s', (head, type) => {
  expect(pictureTypeOf(bytes(head))).toBe(type);
  expect(PICTURE_TYPES).toContain(type);
});

test.each(['', '<svg xmlns="…"/>', '%PDF-1.7', 'BM....', 'RIFF....WAVE', '\x89PNG', 'GIF88a'])(
  '%j is no picture that a model takes',
  (head) => {
    expect(pictureTypeOf(bytes(head))).toBeNull();
  },
);

test('only chat with texts shows pictures: modes with token ids say why they do not', () => {
  expect(picturesRefusedBy('text')).toBeNull();
  expect(picturesRefusedBy('token-in')).toMatch(/from text only/);
  expect(picturesRefusedBy('echo')).toMatch(/placeholders of the server/);
});
