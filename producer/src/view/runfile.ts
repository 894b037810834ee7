/** Renders a run configuration as YAML that explains each setting. */
import type { RunFlag, SettingsTree } from '@swefarm/runs';

type Flag = Pick<RunFlag, 'path' | 'help' | 'choices' | 'default'>;

/** Returns a file with the given settings, and with the other settings of `flags` as comments with their defaults. */
export function renderRunFile(settings: SettingsTree, flags: readonly Flag[], usage: string): string {
  return [
    `# Run configuration of swefarm, for: ${usage}`,
    '# A flag of a command wins over this file. A line that begins with # and a setting shows its default.',
    '# (not set): the setting has no default; a value on such a line is an example.',
    ...sectionLines(settings, flags, 0).lines,
    '',
  ].join('\n');
}

/** `isSet`: the section has a setting that is no comment. */
type Section = { lines: string[]; isSet: boolean };

function sectionLines(settings: SettingsTree, flags: readonly Flag[], depth: number): Section {
  const indent = '  '.repeat(depth);
  const sections = [...Map.groupBy(flags, ({ path }) => path[depth] ?? '')].map(([key, own]): Section => {
    const [flag] = own;
    const value = settings[key];
    const isLeaf = flag?.path.length === depth + 1;
    const below = isLeaf
      ? { lines: [], isSet: value !== undefined }
      : sectionLines((value ?? {}) as SettingsTree, own, depth + 1);
    const shown = isLeaf ? shownValue(flag, value) : '';
    return {
      isSet: below.isSet,
      lines: [
        ...(depth === 0 ? [''] : []),
        ...(isLeaf ? [`${indent}# ${helpOf(flag)}`] : []),
        `${below.isSet ? '' : '#'}${indent}${key}:${shown}`,
        ...below.lines,
      ],
    };
  });
  return { lines: sections.flatMap(({ lines }) => lines), isSet: sections.some(({ isSet }) => isSet) };
}

/** Examples of settings without a default whose form in a file differs from that of the flag. */
const EXAMPLES: Readonly<Record<string, string>> = { 'until.curriculum.band': ' [0.2, 0.8]' };

const shownValue = (flag: Flag, value: unknown): string =>
  value === undefined && flag.default === undefined
    ? `${EXAMPLES[flag.path.join('.')] ?? ''} # (not set)`
    : ` ${JSON.stringify(value ?? flag.default)}`;

const helpOf = ({ help, choices }: Flag): string =>
  choices === undefined ? help : `${help} (choices: ${choices.join(', ')})`;
