/** vitest's global setup: one Redis per run; each test file uses a prefix of its own. */
import { startRedis, type TestRedis } from '../launchers/redis.ts';

let redis: TestRedis | null = null;

export async function setup(): Promise<void> {
  redis = await startRedis();
  process.env.SWEFARM_TEST_REDIS_URL = redis.url;
}

export async function teardown(): Promise<void> {
  await redis?.[Symbol.asyncDispose]();
}
