package main

// languageHead and languageTail are what LANGUAGES.md says around its figures.
const languageHead = `# Requests for harm in other languages

The card of the part of the model that reads them. Made by ` + "`make languages DATA=<dir>`" + `, and by ` + "`make train`" + ` with the rest; do not edit. [MODEL.md](MODEL.md) is the card of the heads.

## Method

The heads have learnt from English. Of requests for harm in other languages they find hardly any: the words of the lexicon are English, and so are the acts that they know. This part is one more logistic regression, asked only where the text is not English. Its score counts as that of harm_request, where it is the higher one.

- **Which texts.** Each bucket of the spelling has a number that says by how much more often it occurs in texts of other languages. A span of a text is in another language if their mean is higher than in 99.9 % of English texts. English texts score as if the part were not there.
- **Spelling.** Words, pairs of words next to each other and over one between, and character 3- to 5-grams, hashed into a table of the part's own.
- **Concepts.** Some 46,000 terms in seventeen languages belong to sixty concepts (cmd/train/seeds/concepts: theft_act, weapon_explosive, evade_law, prevention, fiction_frame, …). What a text has of a concept counts with one weight in all languages, so that what is learnt in one helps the others. ` + "`caddy lex assess --explain`" + ` names them.
- **Severity.** Gain and offset are set on held-out ordinary prompts, so that a severity means as many false alarms as in English.

A text counts as its worst window of 36 words, or as a whole, as with the heads.

## Data

cmd/train/seeds/languages has 31,000 prompts in eighteen languages, written for this project: requests for harm (H), for each a harmless twin with many of its words (T), and ordinary prompts (B), of which many sound dangerous. They were written by language models that were told to write as people of each country type, not checked by native speakers. Lines of running text in thirty-six languages, and in English, count as ordinary, and so do the programming tasks of cyberseceval_frr in seven languages (MODEL.md names the sources).

The kept prompts (cmd/train/testdata/languages) were written by two other authors of the same kind, who had not seen the first ones. The first time 43.8 % of the requests for harm and 1.5 % of the ordinary prompts were refused. Then, because the everyday prompts of the detector's tests had too high scores, the anchors of the severity were made stricter, and acts in their frames and questions of the running text joined the training: 35.4 and 0.9 %. With a third of the prompts added, by other authors again, they are as below.

The prompts that were kept later (its folder later) are by one more author. Before those prompts were added, 34.4 % of its requests for harm, 4.6 % of its twins and none of its ordinary prompts were refused, and 47.2 and 71.7 % found at 1 and 5 % of its ordinary prompts: that count was the first one, and nothing had been chosen on them. With half of the added prompts 40.6, 4.2 and 0 % were refused.

The fresh prompts of the data are of another author again; concepts, the table's size, the ridge and the anchors of the severity were chosen while looking at them, and they are not in the training. The other ordinary sources were looked at, too.

## Figures

Per cent, with Wilson's intervals at 95 %. "n-grams" is the same regression without concepts, with its own gain and offset: the plain baseline. "Heads alone" is the model without this part.
`

const languageTail = `
## What it does not do

- **It knows requests for harm, and no attacks on the assistant.** Jailbreaks and injections in other languages are what the heads make of them, and what the rules for self-reference find.
- **All its prompts are written by language models,** the kept ones too. What real people write who mean it will be found less often.
- **Tasks of security and programming** are refused more often than other ordinary prompts: they speak of exploits, injections and ransomware, and only the context says that it is harmless. With German, French, Hindi and Thai ones in the training, 7 % of the Spanish, 14 % of the Portuguese and 26 % of the Italian ones of cyberseceval_frr were still refused (before, a third).
- **Languages outside the eighteen** are hardly read, and so is text that mixes English in.
- **Javanese** has the weakest prompts, and no terms were checked by native speakers.
`
