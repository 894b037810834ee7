import { expect, test } from 'vitest';
import { parseLoad } from './load.ts';

const VLLM = `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 30.0
vllm:num_requests_running{engine="1",model_name="m"} 12.0
vllm:num_requests_waiting{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting{engine="1",model_name="m"} 0.0
vllm:kv_cache_usage_perc{engine="0",model_name="a{b}"} 0.91
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.25
vllm:num_preemptions_total{engine="0",model_name="m"} 1.6e+01
vllm:num_preemptions_created{engine="0",model_name="m"} 1.78e+09
`;

test('reads vLLM: counts are added over engines, and the fullest KV cache counts', () => {
  const load = { endpoint: 'e', kv_usage: 0.91, running: 42, waiting: 3, preemptions: 16 };
  expect(parseLoad(VLLM, 'e')).toEqual(load);
  expect(parseLoad(VLLM.replaceAll('kv_cache_usage', 'gpu_cache_usage'), 'e')).toEqual(load);
});

test('reads SGLang, whose counter of retractions appears with the first one', () => {
  const text =
    'sglang:token_usage{tp_rank="0"} 0.28\nsglang:num_running_reqs 7\nsglang:num_queue_reqs 2 1790000000\n';
  const load = { endpoint: 'e', kv_usage: 0.28, running: 7, waiting: 2, preemptions: 0 };
  expect(parseLoad(text, 'e')).toEqual(load);
  expect(parseLoad(`${text}sglang:num_retracted_requests_total 5\n`, 'e')).toEqual({
    ...load,
    preemptions: 5,
  });
});

test('metrics of another server, and numbers that are none, give no load', () => {
  expect(parseLoad('http_requests_total 5\n', 'e')).toBeNull();
  expect(parseLoad('vllm:num_requests_running 1.0\n', 'e')).toBeNull();
  expect(parseLoad('vllm:kv_cache_usage_perc NaN\n', 'e')).toBeNull();
  expect(parseLoad('<html>vllm:kv_cache_usage_perc</html>', 'e')).toBeNull();
});
