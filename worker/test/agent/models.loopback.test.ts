/** The length of a model while its endpoint does not answer. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { servedModel } from '../../src/agent/policy/servedmodels.ts';
import { sendJson, startEndpoint } from './endpoint.ts';

test('after an error the last known length remains, and the endpoint is asked again soon', async () => {
  const list = (version: string, length: number) =>
    sendJson({ data: [{ id: 'm', version, max_model_len: length }] });
  await using endpoint = await startEndpoint(
    list('v1', 100),
    sendJson({ detail: 'starting' }, 503),
    list('v2', 200),
  );
  const now = performance.now.bind(performance);
  let ahead = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + ahead);
  onTestFinished(() => clock.mockRestore());
  const served = () => servedModel(endpoint.url, 'm', null);
  expect(await served()).toEqual({ version: 'v1', length: 100 });
  ahead += 31_000;
  expect(await served()).toEqual({ version: null, length: 100 });
  ahead += 6_000;
  expect(await served()).toEqual({ version: 'v2', length: 200 });
});
