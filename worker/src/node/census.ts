import { errorMessage, onAbort } from '@swefarm/shared';
import type { Node } from './node.ts';

const EVERY_MS = 60_000;

/** Evicts images and counts containers and images, at once and then every minute until the signal aborts. Logs failures. */
export function startCensus(node: Node, signal: AbortSignal): void {
  const count = (): void => {
    evictImages(node)
      .then(() => takeCensus(node))
      .catch((error: unknown) =>
        node.log.warn({ err: errorMessage(error) }, 'census failed: containers and images not counted'),
      );
  };
  count();
  const timer = setInterval(count, EVERY_MS);
  timer.unref();
  onAbort(signal, () => clearInterval(timer));
}

async function evictImages({ runtime, metrics, log }: Node): Promise<void> {
  const evicted = (await runtime.evictImages?.()) ?? 0;
  metrics.imagesEvicted.inc(evicted);
  if (evicted > 0) log.info({ images: evicted }, 'images evicted: the disk is full');
}

/** A container is leaked when its attempt is not running on this worker; a container under removal counts as leaked. */
export async function takeCensus({ runtime, identity, active, metrics }: Node): Promise<void> {
  const [owned, images] = await Promise.all([runtime.listOwned(), runtime.images?.()]);
  const mine = owned.filter(
    ({ owner }) =>
      owner.farm === identity.farm && owner.worker === identity.worker && owner.pid === identity.pid,
  );
  const working = new Set(active.list().map(({ rollout_id, attempt }) => `${rollout_id}/${attempt}`));
  const leaked = mine.filter(({ owner }) => !working.has(`${owner.rollout_id}/${owner.attempt}`));
  metrics.containers.set(mine.length);
  metrics.leaked.set(leaked.length);
  if (!images) return;
  metrics.images.set(images.count);
  metrics.imageBytes.set(images.bytes);
}
