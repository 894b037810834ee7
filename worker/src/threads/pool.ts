/** Threads with a time limit for every task: hostile text may block a thread, but not the event loop. */
import { Worker } from 'node:worker_threads';
import { SwefarmError } from '@swefarm/shared';
import type { TaskInput, TaskName, TaskOutput } from './tasks.ts';
import type { ThreadError } from './thread.ts';

export type Threads = ReturnType<typeof startThreads>;

/** Limits the memory for new objects; by default a thread may use 192 MiB for them. */
const LIMITS = { maxYoungGenerationSizeMb: 16 };

type RunTask = { timeoutMs: number };

const closedError = () => new SwefarmError('threads_closed', 'the threads are closed');

type Waiting = {
  name: TaskName;
  input: unknown;
  options: RunTask;
  resolve: (value: never) => void;
  reject: (error: unknown) => void;
};

/** Threads start when a task first needs or expects them, and stay alive. `size`: maximum number of threads. */
export function startThreads(size: number) {
  const queue: Waiting[] = [];
  const idle: Thread[] = [];
  const all = new Set<Thread>();
  let closed = false;

  const next = (): void => {
    while (queue.length > 0 && (idle.length > 0 || all.size < size)) {
      const task = queue.shift();
      if (!task) return;
      const thread = idle.pop() ?? spawn();
      thread.start(task);
    }
  };

  const spawn = (): Thread => {
    const thread = startThread((healthy) => {
      if (healthy) idle.push(thread);
      else {
        all.delete(thread);
        if (idle.includes(thread)) idle.splice(idle.indexOf(thread), 1);
      }
      next();
    });
    all.add(thread);
    return thread;
  };

  return {
    /** Throws SwefarmError `thread_timeout` when the task needs more than `timeoutMs`; the thread is then replaced. */
    run<N extends TaskName>(name: N, input: TaskInput<N>, options: RunTask): Promise<TaskOutput<N>> {
      if (closed) return Promise.reject(closedError());
      return new Promise((resolve, reject) => {
        queue.push({ name, input, options, resolve, reject });
        next();
      });
    },
    /** Announces a task, so that a thread loads the code of tasks in advance. */
    expect(): void {
      if (!closed && all.size === 0) idle.push(spawn());
    },
    async [Symbol.asyncDispose](): Promise<void> {
      closed = true;
      for (const task of queue.splice(0)) task.reject(closedError());
      await Promise.all([...all].map((thread) => thread.terminate()));
      all.clear();
    },
  };
}

type Thread = { start(task: Waiting): void; terminate(): Promise<unknown> };

/** Starts one thread. Calls `onFree` after each task, with whether the thread can take another, and when the thread dies without a task. */
function startThread(onFree: (healthy: boolean) => void): Thread {
  const worker = new Worker(new URL('./thread.ts', import.meta.url), { resourceLimits: LIMITS });
  worker.unref();
  let current: { task: Waiting; timer: NodeJS.Timeout } | null = null;

  const finish = (healthy: boolean, answer: (task: Waiting) => void): void => {
    if (!current) return;
    const { task, timer } = current;
    current = null;
    clearTimeout(timer);
    if (!healthy) void worker.terminate();
    answer(task);
    onFree(healthy);
  };
  const broken = (error: Error): void => {
    if (current) finish(false, (task) => task.reject(error));
    else onFree(false);
  };

  worker.on('message', (reply: { value: never } | { error: ThreadError }) => {
    finish(true, (task) => {
      if ('value' in reply) task.resolve(reply.value);
      else
        task.reject(
          Object.assign(new Error(reply.error.message), { name: reply.error.name, stack: reply.error.stack }),
        );
    });
  });
  worker.on('messageerror', broken);
  worker.on('error', broken);
  worker.on('exit', (code) => broken(new SwefarmError('thread_died', `a thread ended with code ${code}`)));

  return {
    start(task) {
      const { timeoutMs } = task.options;
      const late = new SwefarmError('thread_timeout', `${task.name} took longer than ${timeoutMs} ms`, {
        retryable: true,
      });
      current = { task, timer: setTimeout(() => broken(late), timeoutMs) };
      worker.postMessage({ name: task.name, input: task.input });
    },
    terminate: () => worker.terminate(),
  };
}
