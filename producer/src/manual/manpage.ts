/** Writes man pages in the macros of man(7). */
import type { CommandPage, OptionEntry } from './page.ts';

/** Facts that every page shows. `date`: `YYYY-MM-DD`. */
export type Edition = { version: string; date: string };

const EXIT_CODES: readonly [code: string, meaning: string][] = [
  ['0', 'All rollouts are judged, or each group has its minimum of judged rollouts.'],
  ['2', 'The usage or an input is wrong. Nothing was changed.'],
  ['10', 'Some rollouts or rows are not judged, are missing or failed.'],
  ['11', 'A group has fewer judged rollouts than its minimum.'],
  ['12', 'Redis, the runtime, the worker or every endpoint is unusable.'],
  ['130', 'A signal interrupted the command.'],
];

/** Returns the name of a page: `swefarm-dataset-fetch`. */
export const pageName = ({ words }: Pick<CommandPage, 'words'>): string => words.join('-');

/** Returns the man page of a command in section 1. `all`: pages that the page may refer to. */
export function manPage(page: CommandPage, edition: Edition, all: readonly CommandPage[]): string {
  const { words, summary, commands, options, example, notes } = page;
  return [
    `.TH ${quoted(pageName(page).toUpperCase())} 1 "${edition.date}" ${quoted(`swefarm ${edition.version}`)} ${quoted('User Commands')}`,
    '.SH NAME',
    `${text(pageName(page))} \\- ${text(summary)}`,
    '.SH SYNOPSIS',
    `.B ${text(words.join(' '))}`,
    text(synopsis(page)),
    ...section(
      'COMMANDS',
      commands.flatMap((one) => entry(one.words.at(-1) ?? '', one.summary)),
    ),
    ...section(
      'ARGUMENTS',
      page.arguments.flatMap(({ syntax, help }) => entry(syntax, help)),
    ),
    ...section('OPTIONS', optionLines(options)),
    ...section('NOTES', notes.trim() === '' ? [] : ['.nf', ...notes.trim().split('\n').map(text), '.fi']),
    ...section('EXAMPLE', example === null ? [] : ['.nf', text(example), '.fi']),
    ...section(
      'EXIT STATUS',
      EXIT_CODES.flatMap(([code, meaning]) => entry(code, meaning)),
    ),
    ...section('SEE ALSO', seeAlso(page, all)),
    '',
  ].join('\n');
}

const section = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : [`.SH ${title}`, ...lines];

/** Returns a tagged paragraph. An empty help text becomes 'See above.', because man(7) rejects a tag without text. */
const entry = (tag: string, help: string): string[] => ['.TP', `.B ${text(tag)}`, text(help || 'See above.')];

function synopsis({ options, arguments: given, commands }: CommandPage): string {
  const words = [...(options.length > 0 ? ['[options]'] : []), ...given.map(({ syntax }) => syntax)];
  return [...words, ...(commands.length > 0 ? ['<command>'] : [])].join(' ');
}

function optionLines(options: readonly OptionEntry[]): string[] {
  const groups = Map.groupBy(options, ({ heading }) => heading);
  return [...groups].flatMap(([heading, own]) => [
    ...(heading === 'Options:' ? [] : [`.SS ${text(heading.replace(/:$/, ''))}`]),
    ...own.flatMap(({ flags, help }) => entry(flags, help)),
  ]);
}

/** Refers to the page above and to the pages below. */
function seeAlso({ words, commands }: CommandPage, all: readonly CommandPage[]): string[] {
  const above = all.find((one) => one.words.join(' ') === words.slice(0, -1).join(' '));
  const named = [...(above ? [above] : []), ...commands].map(pageName).sort();
  return named.map((name, at) => `.BR ${text(name)} (1)${at < named.length - 1 ? ',' : ''}`);
}

/** Escapes a text of one line. man(7) reads a dot or an apostrophe at the beginning of a line as a macro. */
const text = (plain: string): string =>
  plain
    .replaceAll(/[^\S\n]*\n\s*/g, ' ')
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('~', '\\(ti')
    .replaceAll('^', '\\(ha')
    .replaceAll('`', '\\(ga')
    .replaceAll("'", '\\(aq')
    .replaceAll('"', '\\(dq')
    .replace(/^\./, '\\&.');

const quoted = (plain: string): string => `"${text(plain)}"`;
