/** Writes to the terminal: colours, widths, backpressure, and quoting of commands. */
import { styleText } from 'node:util';
import { shellQuoted } from '@swefarm/shared';

type Style = Parameters<typeof styleText>[0];

/** Adds a style if `stream` is a terminal with colours; else returns the plain text (NO_COLOR is honoured). */
export const styled = (style: Style, text: string, stream: NodeJS.WriteStream): string =>
  styleText(style, text, { stream });

/** Returns the width in columns; 100 if unknown. The terminals of `script` and of some CI systems report 0 columns. */
export const widthOf = ({ columns }: Pick<NodeJS.WriteStream, 'columns'>): number => columns || 100;

/** Resolves when the stream has written the text (backpressure), so that a slow pipe does not fill the memory. */
export function writeTo(stream: NodeJS.WriteStream, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

export const print = (text: string): Promise<void> => writeTo(process.stdout, `${text}\n`);
export const printStatus = (text: string): void => void process.stderr.write(`${text}\n`);

/** Matches a word that a shell does not interpret. */
const PLAIN = /^[\w@%+=:,./-][\w@%+=:,./#-]*$/;
/** Matches a URL with a user or a password. */
const SECRET = /:\/\/[^/\s]*@/;

/** Quotes a word for a shell, if necessary. */
export const quoted = (word: string): string => (PLAIN.test(word) ? word : shellQuoted(word));

/** Returns this process's command, quoted for a shell, with the flag `more`. A command with a secret is not shown. */
export function repeatCommand(args: readonly string[], more: readonly [flag: string, value: string]): string {
  const [flag, value] = more;
  const has = args.some((arg) => arg === flag || arg.startsWith(`${flag}=`));
  const added = has ? [] : [flag, value];
  if (args.some((arg) => SECRET.test(arg))) return ['the same command', ...added].join(' ');
  return ['npx swefarm', ...[...args, ...added].map(quoted)].join(' ');
}
