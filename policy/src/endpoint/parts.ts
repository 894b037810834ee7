import type { Message } from '@swefarm/shared';
import { describePicture, type Picture } from '@swefarm/shared';
import type { ChatCompletionContentPart } from 'openai/resources/chat/completions';

/** A message without `pictures`; its content is a list of parts when it had pictures. */
export type WireMessage = Omit<Message, 'content' | 'pictures'> & {
  content: string | null | ChatCompletionContentPart[];
};

/**
 * The pictures of a message that have a file. Only the farm's own user messages have pictures; an endpoint may use a field of
 * this name for something else.
 */
export function picturesOf({ role, pictures }: Message): Picture[] {
  return role === 'user' && Array.isArray(pictures) ? pictures.filter(({ file }) => file) : [];
}

/** The picture as a data URL (RFC 2397). */
export const dataUrl = ({ file }: Picture): string => `data:${file?.media_type};base64,${file?.data ?? ''}`;

/** The message for an endpoint, or for an export in the same form. */
export function wireMessage(message: Message): WireMessage {
  const pictures = picturesOf(message);
  if (pictures.length === 0) return message;
  const { pictures: _pictures, content, ...rest } = message;
  const images = pictures.map((picture) => ({
    type: 'image_url' as const,
    image_url: { url: dataUrl(picture) },
  }));
  return { ...rest, content: [{ type: 'text', text: content ?? '' }, ...images] };
}

/** The message as text only: the pictures are named below the text. */
export function withNamedPictures(message: Message): Message {
  const named = picturesOf(message).map(describePicture);
  if (named.length === 0) return message;
  const { pictures: _pictures, content, ...rest } = message;
  return { ...rest, content: [content ?? '', ...named].join('\n') };
}

/** Refusals of servers that take no pictures (vLLM, SGLang, llama.cpp, OpenAI). */
const REFUSED =
  /\bimages?\b[^.]{0,80}\b(not|only|unsupported|at most|may be provided)|(not|only|unsupported|at most|does(n't| not) support)\b[^.]{0,80}\b(image|vision)|image_url|multi-?modal/i;

export const refusesPictures = (text: string): boolean => REFUSED.test(text.slice(0, 2000));

/** Remedy for an endpoint that refuses pictures. */
export const PICTURES_REMEDY =
  'serve a model that takes pictures (vLLM: --limit-mm-per-prompt allows as many as the issues show), or send the text alone with --pictures drop';
