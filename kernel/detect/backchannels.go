package detect

import (
	"strings"
	"sync"
	"unicode"
)

// A backchannel is a short answer that says no more than that somebody agrees, does not, has
// heard or goes on: "Yes, that is correct.", "Wrong", "I agree", "ok, go ahead". (Yngve, On
// getting a word in edgewise, 1970.) The heads have learnt from whole requests, in which these
// words stand before a claim that the assistant is to agree with, and take them alone for the
// claim. So a text of nothing but such words has no score. It asks for nothing, and names nothing
// that could be asked for.
//
// Words that give orders or threaten are not among them (say, tell, admit, must, or, else, me):
// "Agree with me" is no backchannel. Neither are two numbers, which may be a claim.

// assents are the words of backchannels, by language.
var assents = []string{
	// English
	`yes yeah yea yep yup ya y no nope nah n not ok okay k alright right wrong correct incorrect true false exact exactly
	absolutely definitely totally completely entirely certainly indeed precisely perfectly probably maybe perhaps possibly
	surely agreed agree disagree sure fine good great perfect cool nice wonderful awesome excellent lovely well all
	is isn't isnt was wasn't it it's its that that's thats this these those they i i'm im i've i'd i'll am you you're youre
	are aren't we we're were be been so just really very quite too also now then still already here there please thanks thank
	sorry confirm confirmed approve approved accept accepted would wouldn't could couldn't can can't do don't did didn't does
	doesn't have haven't had with by for on of at to as the a an and but both either neither none sounds sound looks look seems
	works work done mean think thought guess know knew see hear heard hope believe understand understood got go going ahead
	continue proceed try again want wait hold next back happy glad more moment later never mind worries problem welcome bye
	hello hi hey oh ah uh um hm hmm mm wow`,
	// Spanish, Portuguese, Italian, French
	`sí si no claro correcto incorrecto exacto exactamente cierto verdad eso es está esta bien vale bueno perfecto gracias
	adelante acuerdo de muy todo tienes razón`,
	`sim não nao certo correto exatamente isso mesmo é está tudo bem ótimo perfeito obrigado obrigada concordo tem razão claro`,
	`sì no corretto giusto esatto esattamente vero è va bene tutto perfetto grazie certo hai ragione d'accordo`,
	`oui non correct c'est ça exact exactement vrai faux bien très d'accord parfait merci tout à fait tu as vous avez raison
	bon vas-y vas allez-y allez y`,
	// German, Dutch, Swedish
	`ja nein das ist stimmt richtig falsch genau korrekt gut sehr okay bitte danke einverstanden klar passt du hast sie haben
	recht weiter`,
	`ja nee dat is klopt juist goed fout precies akkoord prima dank je u wel graag heeft hebt gelijk`,
	`ja nej det är stämmer rätt fel precis bra tack okej du har`,
	// Polish, Russian, Ukrainian
	`tak nie to jest zgadza się prawda dobrze źle dokładnie zgoda dziękuję proszę jasne masz pan pani ma rację`,
	`да нет верно правильно неверно неправильно точно так это хорошо согласен согласна спасибо пожалуйста конечно ладно ок вы ты
	прав права правы`,
	`так ні вірно правильно неправильно точно це добре згоден згодна дякую будь ласка звісно гаразд`,
	// Turkish, Arabic, Hebrew, Persian
	`evet hayır doğru yanlış tamam tamamdır aynen kesinlikle iyi güzel teşekkürler teşekkür ederim lütfen haklısın haklısınız
	katılıyorum bu`,
	`نعم لا صحيح هذا هذه خطأ خاطئ بالضبط تمام حسنا حسناً طيب جيد موافق شكرا شكراً أكيد بالتأكيد`,
	`כן לא נכון זה שגוי בדיוק בסדר טוב מסכים מסכימה תודה בטח בבקשה`,
	`بله نه درست است درسته این غلط دقیقا دقیقاً باشه خوب خوبه موافقم ممنون مرسی حتما`,
	// Hindi, Bengali
	`हाँ हां नहीं जी सही यह ये है गलत ठीक बिल्कुल अच्छा सहमत हूँ हूं धन्यवाद शुक्रिया`,
	`হ্যাঁ হ্যা না ঠিক আছে এটা সঠিক ভুল একদম ভালো আচ্ছা ধন্যবাদ জি`,
	// Chinese, Japanese, Korean: what stands between two signs
	`是 是的 对 对的 不 不是 不对 没错 正确 错 错了 好 好的 可以 行 嗯 谢谢 同意 我同意 我明白了 明白 明白了 當然 当然 對 沒錯 正確 謝謝 继续 請繼續 请继续`,
	`はい いいえ うん そう そうです そうですね その通りです そのとおりです 正しい 正しいです 違います 間違いです はいそうです はい正しいです ok 了解 了解です わかりました
	分かりました お願いします はいお願いします ありがとう ありがとうございます 続けて 続けてください 大丈夫です いいです いいですよ`,
	`네 예 아니요 아니오 아뇨 응 맞아 맞아요 맞습니다 틀려요 틀렸어요 아닙니다 그래요 그렇습니다 좋아요 좋습니다 알겠습니다 알겠어요 동의합니다 감사합니다 고마워요 계속 계속해 계속해주세요`,
	// Vietnamese, Indonesian, Filipino, Swahili, Thai
	`vâng dạ đúng rồi không sai phải được tốt cảm ơn bạn đồng ý chính xác vậy`,
	`ya iya tidak benar salah betul baik oke setuju terima kasih tepat itu sudah lanjutkan`,
	`oo opo hindi tama mali sige salamat po ayos sang-ayon sang ayon ako`,
	`ndiyo hapana sawa sahihi ni si kweli asante nakubali vizuri`,
	`ใช่ ใช่ครับ ใช่ค่ะ ไม่ ไม่ใช่ ถูก ถูกต้อง ถูกต้องครับ ถูกต้องค่ะ ผิด โอเค ตกลง ได้ ได้ครับ ได้ค่ะ ดี ขอบคุณ ครับ ค่ะ`,
}

// assentWords are the normalised words.
var assentWords = sync.OnceValue(func() map[string]bool {
	words := make(map[string]bool)
	for _, ofLanguage := range assents {
		for word := range strings.FieldsSeq(ofLanguage) {
			for part := range strings.FieldsFuncSeq(Normalise(word), betweenWords) {
				words[part] = true
			}
		}
	}
	return words
})

// longestChoice is how many letters or digits a choice has at most. In a longer word several may be
// written together, or something else that is to be decoded.
const longestChoice = 14

// isBackchannel reports whether a normalised text is a backchannel, with a number at most, or one
// English word, such as a choice that was offered.
func isBackchannel(normal string) bool {
	known := assentWords()
	words, numbers, unknown := 0, 0, ""
	for word := range strings.FieldsFuncSeq(normal, betweenWords) {
		words++
		switch {
		case known[word]:
		case len(word) <= longestChoice && isOf(word, '0', '9'):
			numbers++
		default:
			unknown = word
		}
		if unknown != "" && words > 1 || numbers > 1 {
			return false
		}
	}
	return words > 0 && (unknown == "" || len(unknown) <= longestChoice && isOf(unknown, 'a', 'z'))
}

func betweenWords(c rune) bool {
	return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !unicode.IsMark(c) && c != '\''
}

func isOf(word string, from, to rune) bool {
	return strings.IndexFunc(word, func(c rune) bool { return c < from || to < c }) < 0
}
