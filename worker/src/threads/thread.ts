import { parentPort } from 'node:worker_threads';
import { TASKS, type TaskName, type TaskOutput } from './tasks.ts';

const port = parentPort;
if (!port) throw new Error('thread.ts is the body of a worker thread');

/** `error` has the parts of an error that are sent to the main thread. */
export type Reply<N extends TaskName> =
  | { value: TaskOutput<N> }
  | { error: { name: string; message: string; stack: string | undefined } };

port.on('message', async ({ name, input }: { name: TaskName; input: never }) => {
  try {
    port.postMessage({ value: await TASKS[name](input) });
  } catch (error) {
    const { name: kind, message, stack } = error instanceof Error ? error : new Error(String(error));
    port.postMessage({ error: { name: kind, message, stack } } satisfies Reply<TaskName>);
  }
});
