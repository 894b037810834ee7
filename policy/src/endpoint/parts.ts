/** Messages as Chat Completions take them: pictures become parts of the content, behind the text. */

import type { Message } from '@swefarm/shared';
import { describePicture, type Picture } from '@swefarm/shared';
import type { ChatCompletionContentPart } from 'openai/resources/chat/completions';

/** A message on the wire: no `pictures`, but content in parts where it had some. */
export type WireMessage = Omit<Message, 'content' | 'pictures'> & {
  content: string | null | ChatCompletionContentPart[];
};

/** Pictures with a file, of a message that the farm wrote; an endpoint's own field of this name is none. */
export function picturesOf({ role, pictures }: Message): Picture[] {
  return role === 'user' && Array.isArray(pictures) ? pictures.filter(({ file }) => file) : [];
}

/** The address that holds the picture itself (RFC 2397). */
export const dataUrl = ({ file }: Picture): string => `data:${file?.media_type};base64,${file?.data ?? ''}`;

/** The message as an endpoint takes it, and as exports in the same form have it. */
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

/** The message for whoever reads text: pictures are named below its text. */
export function withNamedPictures(message: Message): Message {
  const named = picturesOf(message).map(describePicture);
  if (named.length === 0) return message;
  const { pictures: _pictures, content, ...rest } = message;
  return { ...rest, content: [content ?? '', ...named].join('\n') };
}

/** What a server says that cannot look at pictures (vLLM, SGLang, llama.cpp, OpenAI). */
const REFUSED =
  /\bimages?\b[^.]{0,80}\b(not|only|unsupported|at most|may be provided)|(not|only|unsupported|at most|does(n't| not) support)\b[^.]{0,80}\b(image|vision)|image_url|multi-?modal/i;

/** Whether a refusal is about pictures. */
export const refusesPictures = (text: string): boolean => REFUSED.test(text.slice(0, 2000));

/** What the user can do about an endpoint that refuses pictures. */
export const PICTURES_REMEDY =
  'serve a model that takes pictures (vLLM: --limit-mm-per-prompt allows as many as the issues show), or send the text alone with --pictures drop';
