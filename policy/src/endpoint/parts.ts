import type { Message } from '@swefarm/shared';
import { describePicture, type Picture } from '@swefarm/shared';
import type { ChatCompletionContentPart } from 'openai/resources/chat/completions';

/** Message in the form of the chat API: pictures are parts of the content. */
export type WireMessage = Omit<Message, 'content' | 'pictures'> & {
  content: string | null | ChatCompletionContentPart[];
};

/**
 * Returns the pictures of a user message that have a file. In other messages, a field `pictures` comes from the endpoint and has another
 * meaning.
 */
export function picturesOf({ role, pictures }: Message): Picture[] {
  return role === 'user' && Array.isArray(pictures) ? pictures.filter(({ file }) => file) : [];
}

export const dataUrl = ({ file }: Picture): string => `data:${file?.media_type};base64,${file?.data ?? ''}`;

/** Converts a message for an endpoint, or for an export in the same form. */
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

/** Converts a message to text only. Descriptions of the pictures follow the text. */
export function withNamedPictures(message: Message): Message {
  const named = picturesOf(message).map(describePicture);
  if (named.length === 0) return message;
  const { pictures: _pictures, content, ...rest } = message;
  return { ...rest, content: [content ?? '', ...named].join('\n') };
}

/** Matches the errors of servers that accept no pictures (vLLM, SGLang, llama.cpp, OpenAI). */
const REFUSED =
  /\bimages?\b[^.]{0,80}\b(not|only|unsupported|at most|may be provided)|(not|only|unsupported|at most|does(n't| not) support)\b[^.]{0,80}\b(image|vision)|image_url|multi-?modal/i;

export const refusesPictures = (text: string): boolean => REFUSED.test(text.slice(0, 2000));

export const PICTURES_REMEDY =
  'serve a model that takes pictures (vLLM: --limit-mm-per-prompt allows as many as the issues show), or send the text alone with --pictures drop';
