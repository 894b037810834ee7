#!/usr/bin/env python3
"""
model.py FOLDER: writes a Qwen2 with 0.6 million random weights, and a tokenizer trained here. A server with this model behaves like a
server with a large model. The answers are random and may have bytes that are not UTF-8. If a client sends the text of an answer again, the
tokens differ.
"""
import glob
import os
import sys
import sysconfig

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

VOCABULARY, HIDDEN, LAYERS, HEAD, CONTEXT = 4096, 64, 2, 32, 131072
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MARKUP = ["<tool_call>", "</tool_call>", "<think>", "</think>"]
# Mean probability per token that an answer ends, and that a thought ends.
END = 0.03
THOUGHT_END = 0.1
TEMPLATE = """\
{%- for message in messages %}
    {%- if loop.first and tools %}
        {{- '<|im_start|>system\\n' + (message.content + '\\n' if message.role == 'system' else '') }}
        {%- for tool in tools %}{{- (tool | tojson) + '\\n' }}{% endfor %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
    {%- if message.role == 'tool' %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
    {%- elif not (loop.first and tools and message.role == 'system') %}
        {{- '<|im_start|>' + message.role + '\\n' + (message.content or '') }}
        {%- for call in message.tool_calls or [] %}
            {{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% if enable_thinking %}{{- '<think>\\n' }}{% endif %}{% endif %}
"""


def tokenizer(folder):
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    sources = sorted(glob.glob(os.path.join(sysconfig.get_paths()["stdlib"], "*.py")))[:100]
    bpe.train(sources, trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(MARKUP), special_tokens=CONTROL, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    bpe.add_tokens([AddedToken(text, special=False, normalized=False) for text in MARKUP])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|endoftext|>",
        clean_up_tokenization_spaces=False, model_max_length=CONTEXT)
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    return fast


def weights(folder, fast):
    import torch

    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(fast), hidden_size=HIDDEN, intermediate_size=3 * HIDDEN, num_hidden_layers=LAYERS,
        num_attention_heads=HIDDEN // HEAD, num_key_value_heads=1, max_position_embeddings=CONTEXT,
        tie_word_embeddings=False, bos_token_id=None, eos_token_id=fast.eos_token_id,
        pad_token_id=fast.pad_token_id, initializer_range=0.1)
    model = Qwen2ForCausalLM(config).eval()
    with torch.no_grad():
        head = model.lm_head.weight
        head.normal_(0, 0.35)
        # Channel 0 has a constant value in all layers, so that its column of the head is a bias per token.
        model.model.embed_tokens.weight[:, 0] = 1.0
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight[0] = 0
            layer.mlp.down_proj.weight[0] = 0
        states = model.model(torch.randint(3, len(fast), (16, 64))).last_hidden_state.reshape(-1, HIDDEN)
        scale = states[:, 0].mean()
        head[:, 0] = 0
        for token in ("<|endoftext|>", "<|im_start|>"):
            head[fast.convert_tokens_to_ids(token), 0] = -25 / scale
        # The end of a thought is set first, because it changes the probability of the end of an answer only slightly.
        for token, wanted in ((fast.convert_tokens_to_ids("</think>"), THOUGHT_END), (fast.eos_token_id, END)):
            head[token] = 0
            low, high = -40.0, 40.0
            for _ in range(40):
                head[token, 0] = (low + high) / 2 / scale
                chance = model.lm_head(states).softmax(-1)[:, token].mean().item()
                low, high = ((low + high) / 2, high) if chance < wanted else (low, (low + high) / 2)
    model.generation_config.do_sample = True
    model.generation_config.eos_token_id = fast.eos_token_id
    # A server uses this default if a request has no top_k: with one candidate, all answers are equal at any temperature.
    model.generation_config.top_k = 1
    model.to(torch.bfloat16).save_pretrained(folder)


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    weights(sys.argv[1], tokenizer(sys.argv[1]))
