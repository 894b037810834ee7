import { parentPort } from 'node:worker_threads';
import { TASKS, type TaskName } from './tasks.ts';

const port = parentPort;
if (!port) throw new Error('thread.ts is the body of a worker thread');

/** Parts of an error that are sent to the event loop. */
export type ThreadError = { name: string; message: string; stack: string | undefined };

port.on('message', async ({ name, input }: { name: TaskName; input: never }) => {
  try {
    port.postMessage({ value: await TASKS[name](input) });
  } catch (error) {
    const { name: kind, message, stack } = error instanceof Error ? error : new Error(String(error));
    port.postMessage({ error: { name: kind, message, stack } satisfies ThreadError });
  }
});
