#!/usr/bin/env bash
# Eight short runs, one per way of training, and a digest of everything that they saved. Two
# versions of the code that compute the same print the same lines.
#   benchmarks/bit_record.sh FOLDER > record.txt
set -euo pipefail
out=$1
mkdir "$out"
log=$(realpath "$out")/log
train() { forethought train "$@" --compute.threads 1 >>"$log" 2>&1; }
cd "$out"
rollout=(--rollout.steps-per-iteration 64 --rollout.num-envs 16 --rollout.max-new-tokens 40
  --rollout.temperature 1.0)
line=(--environment.id NumberLine --environment.image-size 64)
train sft "${line[@]}" --model tiny-small --expert-steps 320 --output sft
train ppo "${line[@]}" --model sft --total-steps 192 "${rollout[@]}" --batch-size 32 --epochs 2 \
  --kl-coefficient 0.2 --kl-use reward --output ppo
train ppo --environment.id Bandit --model sft --advantage gigpo --group-size 4 \
  --total-steps 128 "${rollout[@]}" --batch-size 32 --epochs 1 --output gigpo
train sft --environment.id Bandit --model tiny-small --expert-steps 640 --batch-size 16 \
  --optimizer.learning-rate 2e-3 --output bandit_sft
train dpo --environment.id Bandit --model bandit_sft --loss-type sigmoid --pair-reward reward \
  --total-steps 128 "${rollout[@]}" --batch-size 8 --epochs 1 --output dpo
points=(--environment.id EZPoints --prompt.format action_only --environment.image-size 64)
forethought collect --policy random "${points[@]}" --episodes 40 --output data >>"$log" 2>&1
for algorithm in q-sft ilql archer; do
  train "$algorithm" "${points[@]}" --data data --model tiny-small --batch-size 8 \
    --output "$algorithm"
done
find . -path '*/checkpoints/*' -name '*.safetensors' -print0 | sort -z | xargs -0 sha256sum
