/** A toy agent that comes as a program: its card, and the files of its bundle. It needs bash and python3 in the image. */
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AgentCard } from '@swefarm/shared';

const SCRIPT = fileURLToPath(new URL('../../fixtures/toyagent/toy.py', import.meta.url));

/** Writes the files of the bundle `toy` into a folder. */
export const buildToy = (folder: string): Promise<void> => copyFile(SCRIPT, join(folder, 'toy.py'));

/** @param words change what the program does; toy.py describes them */
export const toyCard = (words: readonly string[] = [], change: object = {}): AgentCard =>
  AgentCard.parse({
    ...{ card: 1, name: 'toy', version: '1.0', description: 'a toy of the tests', bundle: { name: 'toy' } },
    needs: { libc: 'none', commands: ['bash', 'python3'], memory_mib: 128, pids: 50 },
    api: { dialects: ['chat'] },
    command: [
      ...['python3', '{bundle}/toy.py', '{endpoint}/v1', '{key}', '{model}', '{out}', '{task_file}'],
      ...words,
    ],
    ends: [
      {
        ...{ exit: 0, status: 'submitted' },
        field: { file: '{out}/end.json', path: 'info.status', is: ['Submitted'] },
      },
      { exit: 'any', status: 'agent_error' },
    ],
    outputs: [{ path: '{out}', as: 'out', max_mib: 1 }],
    ...change,
  });
