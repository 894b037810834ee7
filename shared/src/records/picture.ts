import { z } from 'zod';
import { MOST } from './bounds.ts';

/** Media types that OpenAI's chat API and compatible servers accept. */
export const PICTURE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const;
export type PictureType = (typeof PICTURE_TYPES)[number];

/** The file of a picture. Its bytes determine the type. */
export const PictureFile = z.object({
  media_type: z.enum(PICTURE_TYPES),
  sha256: z.string(),
  bytes: z.number().int().positive().max(MOST.pictureBytes),
  /** The bytes as base64. */
  data: z.string(),
});
export type PictureFile = z.infer<typeof PictureFile>;

export const Picture = z.object({
  /** Address of the picture, as in the dataset row. */
  address: z.string(),
  file: PictureFile.optional(),
  /** Why the picture has no file. */
  problem: z.string().optional(),
});
export type Picture = z.infer<typeof Picture>;

export const PicturesMode = z.enum(['send', 'drop']);

/** Returns the type of a picture by its first bytes; null for other types, such as SVG. */
export function pictureTypeOf(bytes: Uint8Array): PictureType | null {
  const head = Buffer.from(bytes.subarray(0, 12)).toString('latin1');
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png';
  if (head.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  if (head.startsWith('GIF87a') || head.startsWith('GIF89a')) return 'image/gif';
  return head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP' ? 'image/webp' : null;
}

/** Returns why an agent or a token mode does not support pictures; null if both support them. */
export function picturesRefusedBy(agent: string, mode: 'echo' | 'token-in' | 'text'): string | null {
  if (agent === 'installed') return 'an agent that comes as a program does not send pictures';
  if (mode === 'text') return null;
  return mode === 'token-in'
    ? 'token mode token-in renders prompts in the worker, from text only: it does not support pictures'
    : 'token mode echo sends token ids back, and those of a picture are placeholders of the server: it does not support pictures';
}

/** Returns `[picture image/png, 3120 bytes: https://…]`. */
export const describePicture = ({ address, file }: Picture): string =>
  `[picture ${file ? `${file.media_type}, ${file.bytes} bytes` : 'without a file'}: ${address}]`;
