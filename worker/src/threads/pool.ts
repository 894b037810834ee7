/** Threads with a time limit for every task: hostile text may block a thread, but not the event loop. */
import { Worker } from 'node:worker_threads';
import { createSemaphore, SwefarmError } from '@swefarm/shared';
import type { TaskInput, TaskName, TaskOutput } from './tasks.ts';
import type { Reply } from './thread.ts';

export type Threads = ReturnType<typeof startThreads>;

/** Limits the memory for new objects; by default a thread may use 192 MiB for them. */
const LIMITS = { maxYoungGenerationSizeMb: 16 };

/** Threads start when a task first needs or expects them, and stay alive. `size`: maximum number of threads. */
export function startThreads(size: number) {
  const slots = createSemaphore(size);
  const all = new Set<Worker>();
  const idle = new Set<Worker>();
  let closed = false;

  const spawn = (): Worker => {
    const thread = new Worker(new URL('./thread.ts', import.meta.url), { resourceLimits: LIMITS });
    thread.unref();
    all.add(thread);
    // Without a listener, an error of a thread that has no task would end this process.
    thread.on('error', () => undefined);
    thread.on('exit', () => {
      all.delete(thread);
      idle.delete(thread);
    });
    return thread;
  };

  return {
    /** Throws SwefarmError `thread_timeout` after `timeoutMs` or `thread_died`, and errors of the task. A failed thread is replaced. */
    run<N extends TaskName>(
      name: N,
      input: TaskInput<N>,
      { timeoutMs }: { timeoutMs: number },
    ): Promise<TaskOutput<N>> {
      return slots.run(async (): Promise<TaskOutput<N>> => {
        if (closed) throw new SwefarmError('threads_closed', 'the threads are closed');
        const [thread = spawn()] = idle;
        idle.delete(thread);
        const reply = await replyOf<N>(thread, { name, input }, timeoutMs);
        idle.add(thread);
        if ('value' in reply) return reply.value;
        const { message, ...more } = reply.error;
        throw Object.assign(new Error(message), more);
      });
    },
    /** Announces a task, so that a thread loads the code of tasks in advance. */
    expect(): void {
      if (!closed && all.size === 0) idle.add(spawn());
    },
    async [Symbol.asyncDispose](): Promise<void> {
      closed = true;
      await Promise.all([...all].map((thread) => thread.terminate()));
    },
  };
}

/** Throws when the thread dies or does not reply in time; the thread is then terminated. */
async function replyOf<N extends TaskName>(
  thread: Worker,
  task: { name: N; input: TaskInput<N> },
  timeoutMs: number,
): Promise<Reply<N>> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply<N>>();
  const late = `${task.name} took longer than ${timeoutMs} ms`;
  const timer = setTimeout(
    () => reject(new SwefarmError('thread_timeout', late, { retryable: true })),
    timeoutMs,
  );
  const ended = (code: number) => reject(new SwefarmError('thread_died', `a thread ended with code ${code}`));
  thread.on('message', resolve).on('messageerror', reject).on('error', reject).on('exit', ended);
  try {
    thread.postMessage(task);
    return await promise;
  } catch (error) {
    void thread.terminate();
    throw error;
  } finally {
    clearTimeout(timer);
    thread.off('message', resolve).off('messageerror', reject).off('error', reject).off('exit', ended);
  }
}
