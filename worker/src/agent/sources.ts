/** Texts of files of the sandbox for the first prompt, in the form of SWE-bench's inference (make_datasets/create_instance.py). */
import { RolloutFailure } from '@swefarm/shared';
import type { AgentDeps, AgentTask } from './agent.ts';
import { look, type RunScript } from './editor/files.ts';

export type Sources = { readmes: string; code: string };

/** Most characters of all files. */
const MOST = 4 * 1024 ** 2;
const README_LIST = 'for f in [Rr][Ee][Aa][Dd][Mm][Ee]*; do [ -f "$f" ] && printf \'%s\\n\' "$f"; done; true';

/** Reads the files that the prompt set shows. Throws RolloutFailure `instance_invalid` if they are too long, and errors of the shell. */
export async function readSources(
  { instance, config, workdir }: AgentTask,
  deps: AgentDeps,
): Promise<Sources> {
  const sources = typeof config.prompts === 'string' ? undefined : config.prompts[0]?.sources;
  if (!sources) return { readmes: '', code: '' };
  const run: RunScript = (script, maxOutputBytes) =>
    deps.shell.run(script, { timeoutMs: config.step_timeout * 1000, maxOutputBytes, signal: deps.signal });
  const textsOf = async (names: readonly string[]): Promise<string> => {
    const texts: string[] = [];
    for (const name of [...names].sort()) {
      const found = await look(run, `${workdir}/${name}`, 0);
      if (found.kind === 'file') texts.push(fileText(name, found.text.replace(/\r\n?/g, '\n')));
    }
    return texts.join('').replace(/^\n+|\n+$/g, '');
  };
  const readmes = sources.readmes ? (await run(README_LIST, 65_536)).head.toString('utf8').split('\n') : [];
  const texts = {
    readmes: await textsOf(readmes.filter((name) => name !== '')),
    code: await textsOf(sources.code === 'oracle' ? changedFiles(instance.patch) : []),
  };
  const length = texts.readmes.length + texts.code.length;
  if (length <= MOST) return texts;
  throw new RolloutFailure(
    'instance_invalid',
    `the files of the prompt have ${length} characters; at most ${MOST}`,
  );
}

function fileText(name: string, text: string): string {
  const lines = text.split('\n').map((line, at) => `${at + 1} ${line}`);
  return `[start of ${name}]\n${lines.join('\n')}\n[end of ${name}]\n`;
}

/** Returns the files of the repository that a patch changes or removes. */
export const changedFiles = (patch: string): string[] => [
  ...new Set([...patch.matchAll(/^--- a\/(.+?)\t?$/gm)].map(([, name = '']) => name)),
];
