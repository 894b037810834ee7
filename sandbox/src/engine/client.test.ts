import { createRequire } from 'node:module';
import { expect, test } from 'vitest';
import { openEngine } from './client.ts';

test('a client of an engine is opened without ssh and gRPC, which the library loads for what the farm never does', () => {
  openEngine('/var/run/nothing.sock');
  const loaded = Object.keys(createRequire(import.meta.url).cache);
  expect(loaded.filter((file) => /node_modules\/dockerode\//.test(file))).not.toEqual([]);
  // The packages that those two load in turn.
  expect(
    loaded.filter((file) => /node_modules\/(protobufjs|asn1|@grpc\/grpc-js\/build\/src\/server)/.test(file)),
  ).toEqual([]);
});

test('an engine that is not there is an error of the request', async () => {
  await expect(openEngine('/var/run/nothing.sock').ping()).rejects.toThrow(/ENOENT/);
});
