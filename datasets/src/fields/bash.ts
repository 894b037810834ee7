/** Pieces of bash text that hold what a row says. */
import { createHash } from 'node:crypto';

/** One word, whatever it holds. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** A command that reads `text` from its standard input; the line that ends it is none of the text's. */
export function heredoc(command: string, text: string): string {
  let end = `EOF_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
  while (text.includes(end)) end += '_';
  return `${command} <<'${end}'\n${text}${text.endsWith('\n') ? '' : '\n'}${end}`;
}

/** Commands of a row that was stored with HTML's escapes, as they were meant. */
export function unescaped(command: string): string {
  if (!command.includes('&amp;')) return command;
  const meant: Record<string, string> = { lt: '<', gt: '>', quot: '"', '#39': "'", '#x27': "'", amp: '&' };
  return command.replace(/&(lt|gt|quot|#39|#x27|amp);/g, (whole, name: string) => meant[name] ?? whole);
}
