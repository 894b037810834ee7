/** The command that this process was started with, as somebody can give it again. */

/** What a shell leaves alone. */
const PLAIN = /^[\w@%+=:,./-]+$/;
/** A URL with a user or a password. */
const SECRET = /:\/\/[^/\s]*@/;

const quoted = (word: string): string => (PLAIN.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** `more`: what it must have too, added unless it is there. What should not stand on a screen is left to be remembered. */
export function pasteable(args: readonly string[], more: readonly [flag: string, value: string]): string {
  const [flag, value] = more;
  const has = args.some((arg) => arg === flag || arg.startsWith(`${flag}=`));
  const added = has ? [] : [flag, value];
  if (args.some((arg) => SECRET.test(arg))) return ['the same command', ...added].join(' ');
  return ['swefarm', ...[...args, ...added].map(quoted)].join(' ');
}
