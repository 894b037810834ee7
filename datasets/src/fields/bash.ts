/** Embeds texts of a row in bash scripts. */
import { createHash } from 'node:crypto';

/** Returns a command that reads `text` from standard input. The end marker does not occur in the text. */
export function heredoc(command: string, text: string): string {
  let end = `EOF_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
  while (text.includes(end)) end += '_';
  return `${command} <<'${end}'\n${text}${text.endsWith('\n') ? '' : '\n'}${end}`;
}

/** Decodes HTML entities, which some rows have in their commands. */
export function unescaped(command: string): string {
  if (!command.includes('&amp;')) return command;
  const CHARS: Record<string, string> = { lt: '<', gt: '>', quot: '"', '#39': "'", '#x27': "'", amp: '&' };
  return command.replace(/&(lt|gt|quot|#39|#x27|amp);/g, (whole, name: string) => CHARS[name] ?? whole);
}
