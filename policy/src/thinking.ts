/** Separates thinking from the answer, as the reasoning parsers of servers do. */

export type ThoughtTags = { readonly open: string; readonly close: string };

/** Tags of most model families, of Seed-OSS and of Magistral. */
const TAGS: readonly ThoughtTags[] = [
  { open: '<think>', close: '</think>' },
  { open: '<seed:think>', close: '</seed:think>' },
  { open: '[THINK]', close: '[/THINK]' },
];

/**
 * Splits an answer at the first closing tag if the answer begins with an opening tag or `opened` has tags. Without a closing tag, all text
 * is thought. `opened`: tags that the template opened; false: none, so closing tags are text; null: unknown, so any closing tag outside of
 * code ends a thought.
 */
export function splitThinking(
  text: string,
  opened: ThoughtTags | false | null,
): { reasoning: string | null; rest: string } {
  const begun = text.trimStart();
  const tags = opened || TAGS.find(({ open }) => begun.startsWith(open));
  if (!tags && opened === false) return { reasoning: null, rest: text };
  const end = tags ? { at: text.indexOf(tags.close), tags } : closeOutsideOfCode(text);
  if (end === null) return { reasoning: null, rest: text };
  if (end.at === -1) return { reasoning: stripped(text, end.tags), rest: '' };
  return {
    reasoning: stripped(text.slice(0, end.at), end.tags),
    rest: text.slice(end.at + end.tags.close.length).replace(/^\n+/, ''),
  };
}

/** Returns the tags of the thought that the end of a prompt opens; false if there is none. */
export function openedThought(promptEnd: string): ThoughtTags | false {
  const end = promptEnd.trimEnd();
  return TAGS.find(({ open }) => end.endsWith(open)) ?? false;
}

function stripped(thought: string, { open }: ThoughtTags): string {
  const text = thought.trim();
  return (text.startsWith(open) ? text.slice(open.length) : text).trim();
}

/**
 * Finds the first closing tag outside of code blocks, in one scan. Lines that begin with at least three backticks open and close code
 * blocks. In a block that has no end or contains another opening fence, the first tag closes the thought.
 */
function closeOutsideOfCode(text: string): { at: number; tags: ThoughtTags } | null {
  const closing = closings(text);
  let close = closing.next().value;
  let ticks = 0;
  let within: { at: number; tags: ThoughtTags } | null = null;
  for (let at = 0; at <= text.length; ) {
    while (close && close.at < at) close = closing.next().value;
    if (!close && !within) return null;
    const newline = text.indexOf('\n', at);
    const end = newline === -1 ? text.length : newline;
    let own = 0;
    while (text[at + own] === '`') own++;
    if (ticks > 0) {
      if (close && close.at < end) within ??= close;
      if (own >= ticks && text.slice(at + own, end).trim() === '') {
        ticks = 0;
        within = null;
      } else if (own >= ticks && within) return within;
    } else if (own >= 3) ticks = own;
    else if (close && close.at < end) return close;
    at = end + 1;
  }
  return within;
}

function* closings(text: string): Generator<{ at: number; tags: ThoughtTags }, undefined> {
  for (const { 0: tag, index } of text.matchAll(/<\/think>|<\/seed:think>|\[\/THINK\]/g)) {
    const tags = TAGS.find(({ close }) => close === tag);
    if (tags) yield { at: index, tags };
  }
}
