/** Terminal output: colours, widths, and writing with back pressure. */
import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

/** Styled on a terminal that shows colours, plain elsewhere (NO_COLOR is honoured). */
export const styled = (style: Style, text: string, stream: NodeJS.WriteStream): string =>
  styleText(style, text, { stream });

/** Some terminals, such as those of `script` and of some CI systems, report 0 columns. */
export const widthOf = ({ columns }: Pick<NodeJS.WriteStream, 'columns'>): number => columns || 100;

/** Resolves when the stream took the text, so that a slow pipe slows the process and does not fill its memory. */
export function writeTo(stream: NodeJS.WriteStream, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

export const print = (text: string): Promise<void> => writeTo(process.stdout, `${text}\n`);
export const printStatus = (text: string): void => void process.stderr.write(`${text}\n`);

/** Characters that a shell does not interpret. */
const PLAIN = /^[\w@%+=:,./-][\w@%+=:,./#-]*$/;
/** A URL with a user or a password. */
const SECRET = /:\/\/[^/\s]*@/;

/** A word as a shell takes it. */
export const quoted = (word: string): string =>
  PLAIN.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

/** The command of this process, quoted for a shell, with the flag `more` added unless present. A command with a secret is not shown. */
export function repeatCommand(args: readonly string[], more: readonly [flag: string, value: string]): string {
  const [flag, value] = more;
  const has = args.some((arg) => arg === flag || arg.startsWith(`${flag}=`));
  const added = has ? [] : [flag, value];
  if (args.some((arg) => SECRET.test(arg))) return ['the same command', ...added].join(' ');
  return ['npx swefarm', ...[...args, ...added].map(quoted)].join(' ');
}
