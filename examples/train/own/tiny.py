"""
Makes a Qwen2 of some 140,000 random parameters with its own tokenizer, and teaches the model the form of the answers.

    python tiny.py FOLDER

writes the random model, for a server whose weights the trainer replaces.
"""

import random
import sys

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

import tasks

CONTEXT = 2048
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
#: The template is append-only: a longer conversation begins with the ids of a shorter one.
TEMPLATE = """\
{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""
#: Share of the demonstrations that begin with the right command. The mean reward before training is close to it.
SKILL = 0.15


def make(seed, folder=None):
    """
    Returns the model, in float32, and its tokenizer. ``folder``: the folder of a server's model, whose tokenizer is loaded as the server
    loads it. For a Qwen2, transformers splits numbers differently, so the model would learn other ids for the same prompt.
    """
    torch.manual_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(folder) if folder else _tokenizer()
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=192,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return Qwen2ForCausalLM(config).float(), tokenizer


def _tokenizer():
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=512, special_tokens=CONTROL, initial_alphabet=alphabet, show_progress=False)
    # Words of the prompts become single tokens, so that sequences and steps are short.
    bpe.train_from_iterator([*tasks.PROMPTS.values(), *tasks.FIX, tasks.OBSERVATION, "system\nuser\nassistant\n"] * 20, trainer)
    whole = ["```bash\n", "\n```", tasks.SUBMIT, *tasks.COMMANDS]
    bpe.add_tokens([AddedToken(text, special=False, normalized=False) for text in whole])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        clean_up_tokenization_spaces=False,
        model_max_length=CONTEXT,
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def log_probs(model, sequences, pad):
    """Returns the log-probability of each token but the first of each sequence of ids: [sequences, longest - 1], padded."""
    longest = max(map(len, sequences))
    ids = torch.full((len(sequences), longest), pad)
    seen = torch.zeros(len(sequences), longest, dtype=torch.long)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = torch.tensor(sequence)
        seen[row, : len(sequence)] = 1
    logits = model(input_ids=ids, attention_mask=seen).logits[:, :-1].float()
    return logits.log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1)


def learn_form(model, tokenizer, seed, steps=400, batch=16):
    """
    Trains on conversations of the right form: a command in a block, then the submission. Most of the first commands are
    wrong. Returns the last loss.
    """
    draw = random.Random(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
    # The learning rate decays, so the last batches do not dominate the mean reward before training.
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=steps)
    model.train()
    for _ in range(steps):
        examples = [_demonstration(tokenizer, draw) for _ in range(batch)]
        scores = log_probs(model, [ids for ids, _ in examples], tokenizer.pad_token_id)
        mask = torch.zeros_like(scores)
        for row, (_, trained) in enumerate(examples):
            mask[row, : len(trained) - 1] = torch.tensor(trained[1:], dtype=torch.float)
        loss = -(scores * mask).sum() / mask.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return loss.item()


def _demonstration(tokenizer, draw):
    instance = draw.choice(list(tasks.FIX))
    first = tasks.FIX[instance] if draw.random() < SKILL else draw.choice(tasks.WRONG[instance])
    commands = [first, tasks.SUBMIT] if draw.random() < 0.7 else [first, "ls > /dev/null", tasks.SUBMIT]
    prompt = tokenizer.apply_chat_template(tasks.messages(instance), add_generation_prompt=True, tokenize=True, return_dict=False)
    told = tokenizer.encode(f"\n<|im_start|>user\n{tasks.OBSERVATION}<|im_end|>\n<|im_start|>assistant\n", add_special_tokens=False)
    ids, trained = list(prompt), [0] * len(prompt)
    for number, command in enumerate(commands):
        if number > 0:
            ids += told
            trained += [0] * len(told)
        answer = tokenizer.encode(tasks.fenced(command), add_special_tokens=False) + [tokenizer.eos_token_id]
        ids += answer
        trained += [1] * len(answer)
    return ids, trained


if __name__ == "__main__":
    for part in make(0):
        part.save_pretrained(sys.argv[1])
