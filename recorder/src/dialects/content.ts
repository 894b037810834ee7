/** Reads the content of a message: a text, or a list of parts, of which the policy gets the texts. */
import { BadRequest } from './dialect.ts';
import { requireFields, requireName, textOf } from './fields.ts';

const OMITTED = '[image omitted]';

const TEXTS = new Set(['text', 'input_text', 'output_text', 'summary_text', 'reasoning_text']);
const PICTURES = new Set(['image', 'image_url', 'input_image', 'computer_screenshot']);

/** Joins the texts of parts as vLLM joins them. */
export const joined = (texts: readonly string[]): string => texts.filter((text) => text !== '').join('\n');

/** Returns the text of a part, or null if the kind of the part is unknown. */
export function partText(part: Record<string, unknown>, path: string, dropped: Set<string>): string | null {
  const kind = requireName(part.type, `${path}.type`);
  if (TEXTS.has(kind)) return textOf(part.text, `${path}.text`);
  if (kind === 'refusal') return textOf(part.refusal, `${path}.refusal`);
  if (!PICTURES.has(kind)) return null;
  dropped.add('picture');
  return OMITTED;
}

/** Returns the text of a content. Adds parts of other kinds to `dropped`. Throws BadRequest if the content is neither text nor list. */
export function contentText(content: unknown, path: string, dropped: Set<string>): string {
  if (content === undefined || content === null || typeof content === 'string') return content ?? '';
  if (!Array.isArray(content)) throw new BadRequest(`${path}: expected a text or a list of parts`);
  const texts = content.map((value: unknown, index) => {
    if (typeof value === 'string') return value;
    const part = requireFields(value, `${path}[${index}]`);
    const text = partText(part, `${path}[${index}]`, dropped);
    if (text === null) dropped.add(`part ${String(part.type)}`);
    return text ?? '';
  });
  return joined(texts);
}
