/** Pictures of an issue: what an instance keeps of them, and which settings of a run can show them to a model. */
import { z } from 'zod';
import { MOST } from './bounds.ts';

/** The forms that OpenAI's chat API and the servers that follow it take as an image part. */
export const PICTURE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const;
export type PictureType = (typeof PICTURE_TYPES)[number];

/** The file of a picture. Its type is told by its bytes, never by its name. */
export const PictureFile = z.object({
  media_type: z.enum(PICTURE_TYPES),
  sha256: z.string(),
  bytes: z.number().int().positive().max(MOST.pictureBytes),
  /** Base64. */
  data: z.string(),
});
export type PictureFile = z.infer<typeof PictureFile>;

export const Picture = z.object({
  /** As the row names it. */
  address: z.string(),
  file: PictureFile.optional(),
  /** Why there is no file. */
  problem: z.string().optional(),
});
export type Picture = z.infer<typeof Picture>;

/** Whether the model is sent the pictures of an issue, or its text alone. */
export const PicturesWish = z.enum(['send', 'drop']);

/** The type of a picture by its first bytes; null for everything else, SVG included. */
export function pictureTypeOf(bytes: Uint8Array): PictureType | null {
  const head = Buffer.from(bytes.subarray(0, 12)).toString('latin1');
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png';
  if (head.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  if (head.startsWith('GIF87a') || head.startsWith('GIF89a')) return 'image/gif';
  return head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP' ? 'image/webp' : null;
}

/** Why a token mode cannot show pictures; null when it can. */
export function picturesRefusedBy(mode: 'echo' | 'token-in' | 'text'): string | null {
  if (mode === 'text') return null;
  return mode === 'token-in'
    ? 'token mode token-in renders prompts here, from text alone: it cannot hold pictures'
    : 'token mode echo sends token ids back, and those of a picture are only places that the server fills: it cannot hold pictures';
}

/** `[picture image/png, 3120 bytes: https://…]`, for whoever reads text. */
export const describePicture = ({ address, file }: Picture): string =>
  `[picture ${file ? `${file.media_type}, ${file.bytes} bytes` : 'without a file'}: ${address}]`;
