/**
 * Simulated engines. Their constants come from vLLM, the models and the GPUs. The constants of the controller
 * (worker/src/admission/controller.ts) were chosen without these engines.
 *
 * - vLLM 0.12 and later, `EngineArgs.get_batch_defaults` (vllm/engine/arg_utils.py), API server: 8192 tokens a step and 1024 requests on GPUs of 70
 *   GiB or more other than the A100, else 2048 and 256. `gpu_memory_utilization` 0.9.
 * - GPUs, by their data sheets: H100 SXM 80 GB, 3.35 TB/s, dense 989 TFLOPS (bf16), 1979 (fp8); A100 40 GB, 1.555 TB/s, 312 TFLOPS (bf16).
 * - Models, by their config.json: Llama-3.1-8B has 32 layers and Qwen3-32B 64, both with 8 KV heads of 128 in bf16.
 *
 * Each step reads the weights once, and the KV cache of all requests that generate. A prompt costs two operations for each parameter and
 * token, at half of the GPU's peak rate.
 */
import { EngineOptions } from '@swefarm/testkit';

type Hardware = { memory: number; bytesPerSecond: number; flops: number };
type Model = { parameters: number; weightBytes: number; kvBytes: number };
type Batch = { step_tokens: number; max_seqs: number };

/** Bytes for activations, CUDA graphs and the runtime. */
const OVERHEAD = 4e9;
const MEMORY_SHARE = 0.9;
const PEAK_SHARE = 0.5;
const LARGE: Batch = { step_tokens: 8192, max_seqs: 1024 };
const SMALL: Batch = { step_tokens: 2048, max_seqs: 256 };
const kvBytes = (layers: number): number => 2 * layers * 8 * 128 * 2;

function engineOf({ memory, bytesPerSecond, flops }: Hardware, model: Model, batch: Batch): EngineOptions {
  const room = MEMORY_SHARE * memory - model.weightBytes - OVERHEAD;
  return EngineOptions.parse({
    ...batch,
    kv_tokens: Math.floor(room / model.kvBytes / 16) * 16,
    step_ms: (1000 * model.weightBytes) / bytesPerSecond,
    request_ms: 0,
    context_token_ms: (1000 * model.kvBytes) / bytesPerSecond,
    prefill_token_ms: (1000 * 2 * model.parameters) / (flops * PEAK_SHARE),
  });
}

const LLAMA_8B: Model = { parameters: 8.03e9, weightBytes: 16.06e9, kvBytes: kvBytes(32) };
const QWEN_32B_FP8: Model = { parameters: 32.8e9, weightBytes: 32.8e9, kvBytes: kvBytes(64) };
const H100: Hardware = { memory: 85.5e9, bytesPerSecond: 3.35e12, flops: 989e12 };
const A100: Hardware = { memory: 42.9e9, bytesPerSecond: 1.555e12, flops: 312e12 };

export const ENGINES = {
  'H100, Llama-3.1-8B': engineOf(H100, LLAMA_8B, LARGE),
  'H100, Qwen3-32B-FP8': engineOf({ ...H100, flops: 1979e12 }, QWEN_32B_FP8, LARGE),
  'A100-40GB, Llama-3.1-8B': engineOf(A100, LLAMA_8B, SMALL),
} as const satisfies Record<string, EngineOptions>;
