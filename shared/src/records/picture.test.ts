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
  '%j is no supported picture',
  (head) => {
    expect(pictureTypeOf(bytes(head))).toBeNull();
  },
);

test('only token mode text supports pictures', () => {
  expect(picturesRefusedBy('mini', 'text')).toBeNull();
  expect(picturesRefusedBy('mini', 'token-in')).toMatch(/from text only/);
  expect(picturesRefusedBy('mini', 'echo')).toMatch(/placeholders of the server/);
});
