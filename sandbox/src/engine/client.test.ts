import { createRequire } from 'node:module';
import { expect, test } from 'vitest';
import { openEngine } from './client.ts';

test('a client is opened without the unused ssh and gRPC packages', () => {
  openEngine('/var/run/nothing.sock');
  const loaded = Object.keys(createRequire(import.meta.url).cache);
  expect(loaded.filter((file) => /node_modules\/dockerode\//.test(file))).not.toEqual([]);
  // The ssh and gRPC packages would load these packages.
  expect(
    loaded.filter((file) => /node_modules\/(protobufjs|asn1|@grpc\/grpc-js\/build\/src\/server)/.test(file)),
  ).toEqual([]);
});

test('a missing engine is an error of the first request', async () => {
  await expect(openEngine('/var/run/nothing.sock').ping()).rejects.toThrow(/ENOENT/);
});
