/** So many at once, the others in the order in which they came. */

export type Slots = { take(signal: AbortSignal): Promise<() => void> };

export function createSlots(count: number): Slots {
  let free = count;
  const waiting: (() => void)[] = [];
  const release = (): void => {
    const next = waiting.shift();
    if (next) next();
    else free += 1;
  };
  return {
    async take(signal) {
      signal.throwIfAborted();
      if (free > 0) free -= 1;
      else {
        await new Promise<void>((resolve, reject) => {
          const onAbort = (): void => {
            const at = waiting.indexOf(go);
            if (at >= 0) waiting.splice(at, 1);
            reject(signal.reason);
          };
          const go = (): void => {
            signal.removeEventListener('abort', onAbort);
            resolve();
          };
          waiting.push(go);
          signal.addEventListener('abort', onAbort, { once: true });
        });
      }
      let given = true;
      return () => {
        if (given) release();
        given = false;
      };
    },
  };
}
