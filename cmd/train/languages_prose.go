package main

// languageHead and languageTail are what LANGUAGES.md says around its figures.
const languageHead = `# Requests for harm and attacks on the assistant, in English and in other languages

The card of the part of the model that reads them. Made by ` + "`make languages DATA=<dir>`" + `, and by ` + "`make train`" + ` with the rest; do not edit. [MODEL.md](MODEL.md) is the card of the heads.

## Method

The heads have learnt from English public test sets. Of requests for harm, and of attacks on the assistant (forget your rules, be somebody without any, show the text above, accept a forged order), in other languages they find hardly any, and of English ones in words that those sets do not have they find few. Two readers help them, one for English and one for the other languages. Each answers two questions, whether a text asks for harm and whether it attacks the assistant, by one more logistic regression for each; its score counts as that of harm_request or identity, where it is the higher one.

- **Which texts.** Each bucket of the spelling has a number that says by how much more often it occurs in texts of other languages. A span of a text is in another language if their mean is higher than in 99.9 % of English texts. The English reader is asked a question only about spans of which the head of that question thinks that there may be something (a probability of 0.03): the others score as if it were not there, and cost the same. These are nine in ten short questions (banking77, clinc150) and half of the instructions and of the tasks with a passage; what is asked costs about twice the time of the heads.
- **Spelling.** Words, pairs of words next to each other and over one between, and character 3- to 5-grams, hashed into a table of the reader's own, once for both questions.
- **Concepts.** Some 55,000 terms in eighteen languages, 13,000 of them English, belong to sixty concepts (cmd/train/seeds/concepts: theft_act, weapon_explosive, evade_law, prevention, fiction_frame, …). What a text has of a concept counts with one weight, so that what is learnt of one word, or of one language, helps the others. They help to find requests for harm; to attacks on the assistant they add nothing (see below), so that answer is spelling alone, the plain baseline. ` + "`caddy lex assess --explain`" + ` names them.
- **Severity.** Gain and offset are set on held-out ordinary prompts, so that a severity means as many false alarms as with the heads.

A text counts as its worst window of 36 words, or as a whole, as with the heads; of one that is longer than a window, only windows are asked whether they attack the assistant. The readers are trained apart, because together, with one set of weights for the concepts, they find less in the other languages and no more in English.

## Data

cmd/train/seeds/languages has 40,000 prompts in nineteen languages, written for this project: requests for harm (H), for each a harmless twin with many of its words (T), and ordinary prompts (B), of which many sound dangerous. They were written by language models that were told to write as people of each country, trade or kind type, not checked by native speakers. Lines of running text in thirty-six languages, and in English, count as ordinary.

The English reader has 8,700 prompts by twelve authors, running text in windows of 36 words, and those of 290,000 more such windows that a first fit takes for requests for harm. It has seen no labelled record of the data, so that every English source there is new to it; [MODEL.md](MODEL.md) has its figures by source, with the heads held out. The other reader has also seen the programming tasks of cyberseceval_frr in seven languages (MODEL.md names the sources).

cmd/train/seeds/assistant has 21,600 prompts for the second question, in the same languages: attacks on deployed assistants (A), harmless twins in their words (T), and ordinary prompts (B), of which half are such as a filter stumbles over: long roles and rules, templates, games, code. Eleven authors wrote 9,400 in English, each with another kind in mind (hidden text, forged messages, personas, what ordinary customers try, attacks within work, play, games of the password, forbidden requests in a guise, what players of such games really type, and two of harmless prompts in the words of attacks), two those of each other language. The harmless prompts of the first question count as ordinary here, its requests for harm as nothing.

The kept prompts (cmd/train/testdata) are in no training:

- "kept" is by two authors who had not seen the first prompts. The first time 43.8 % of the requests for harm and 1.5 % of the ordinary prompts were refused. Then, because the everyday prompts of the detector's tests had too high scores, the anchors of the severity were made stricter, and acts in their frames and questions of the running text joined the training: 35.4 and 0.9 %. With a third of the prompts added, by other authors again, they are as below.
- "kept later" is by one more author. Before those prompts were added, 34.4 % of its requests for harm, 4.6 % of its twins and none of its ordinary prompts were refused, and 47.2 and 71.7 % found at 1 and 5 % of its ordinary prompts: that count was the first one, and nothing had been chosen on them. With half of the added prompts 40.6, 4.2 and 0 % were refused.
- "kept English" is by an author who wrote beside the other twelve. The first count was with readers that were trained together: 35.5 % of the requests for harm, 9.0 % of the twins and 0.3 % of the ordinary prompts refused, 44.5 and 68.0 % found at 1 and 5 %. The readers were parted because of the other languages; then it was counted once more, as below.
- "kept English: attacks on the assistant", with twins and ordinary prompts, are by one more author, those of the other languages by two more. The first count, old readers (requests for harm alone) and new ones: of the English attacks 16.0 and 56.0 % are refused, of the twins 4.4 and 9.6 %, of the ordinary prompts 2.0 and 2.0 %; of the attacks in other languages 6.5 and 48.6 %, of the twins 4.9 and 9.3 %, of the ordinary prompts 2.3 and 3.7 %. Then a page of one repeated sentence about the weather was found to count as an attack, because the sum grows with what is repeated. Since then long texts are asked by windows alone: 54.4, 8.8 and 2.0 %; 46.3, 8.8 and 3.7 %. That was with 17,000 prompts by eight English authors and one in six languages; with three more, and a second one there, they are as below.
- "kept English later" is by one more author, of whom nobody has learnt, who was told to write harmless lines in the words of attacks, and attacks as players and pasters of such type them. Counted first with the readers of before: 36.7 % of the attacks refused and 3.5 % of the harmless lines; with the heads and the answer about harm alone 11.0 and 2.5 %. "kept English hard" are the 1,300 harmless lines of three more authors.

Whether concepts and windows taken for attacks help, and which anchors, was chosen on the authors of the seeds, each by a model that had not seen it, on fresh attacks and on ordinary sources; the anchors are those of the first question, and the second answer is lowered by 0.2 in its logit, because with more authors more of their ordinary prompts are easy: without that 124 and with it 111 of 38,110 ordinary prompts of the data reach 0.70, before there were more authors 100. With one English author 16.7 % of the fresh attacks on the identity reach 0.70, with three 50, with six, of whom the last two wrote harder ordinary prompts, 39, at fewer false alarms. Of the fourth author's attacks the heads refuse 6.0 %, with readers that have seen the first three 40.7 % without concepts and 39.0 % with them; of its twins 1.7, 2.7 and 3.0 %. Attacks in a language of which the reader has seen none are hardly found (12 instead of 9 %).

The fresh prompts of the data are of another author again; concepts, the table's size, the ridge, the anchors of the severity, the floor and the English windows were chosen while looking at them, and they are not in the training. The other ordinary sources were looked at, too.

**All of these authors are language models.** How much of the gain is their common style shows a test set of other people: of XSTest (Röttger et al. 2024; repository paul-rottger/exaggerated-safety, not in this one), whose prompts were written by researchers and looked at by nobody here, the unsafe ones are refused in 25.0 % (heads alone 21.0) and over 0.335 in 57.0 % (51.5), the safe ones, which are made to sound unsafe, in 4.4 % (3.6) and 20.4 % (17.6). That is next to no better than the heads with another threshold.

What is left of that on attacks by people, counted once for each of three readers: of 487 direct injections (players of Tensor Trust, Toyer et al. 2024; deepset/prompt-injections; PALLMs; write-ups of Gandalf and HackAPrompt; CyberSecEval; copied from public repositories, not in this one, and looked at by nobody here) 36.8 % were refused by the old readers and 43.3 % by the first that had learnt of attacks (43.7 before long texts were read by windows alone), and 46.8 % by those here; 58.5, 66.3 and 70.8 % are over 0.335; of 485 harmless prompts (NotInject, Li et al. 2024, made to sound like injections, and the harmless ones of deepset) 11 are refused by each, and 70, 73 and 73 are over 0.335. Of 1,300 harmless English lines in the words of attacks (testdata/assistant/hard: "ignore the typos please, whats the refund policy"), by three more authors, counted once, 3 were refused by the old readers, 12 by the first new ones and 15 by those here. So people's attacks gain ten points where those of the kept author gain forty. Of the labelled ordinary prompts of the data, which the heads have seen and the readers not, 111 instead of 93 of 41,157 are refused, seven more of them personas of prompts_chat.

## Figures

Per cent, with Wilson's intervals at 95 %. "n-grams" is the same regression without concepts, with its own gain and offset: the plain baseline. "Heads alone" is the model without the readers.
`

const languageTail = `
## What it does not do

- **Attacks that say nothing of the assistant** (a word to be spelled backwards, a question whose answer is the secret) look like ordinary questions, and are left to what the answer gives away.
- **All its prompts are written by language models,** the kept ones too. What real people write who mean it will be found less often.
- **It does not weigh how bad a thing is.** A lie to the boss and alcohol smuggled into a concert can score as high as a burglary.
- **Tasks of security and programming** in other languages are refused more often than other ordinary prompts: they speak of exploits, injections and ransomware, and only the context says that it is harmless. With German, French, Hindi and Thai ones in the training, 7 % of the Spanish, 14 % of the Portuguese and 26 % of the Italian ones of cyberseceval_frr were still refused (before, a third).
- **Languages outside the nineteen** are hardly read, and so is text that mixes English in.
- **Javanese** has the weakest prompts, and no terms were checked by native speakers.
`
