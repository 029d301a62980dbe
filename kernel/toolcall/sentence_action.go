package toolcall

import (
	"maps"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// action is a set of kinds of acts. Words for one kind of act are one word to a reader
// who asks whether two texts speak of the same act: to forward is to send.
type action uint32

const (
	actRead action = 1 << iota
	actSend
	actPublish
	actPay
	actTrade
	actBuy
	actDelete
	actEnd
	actCreate
	actUpdate
	actMove
	actPlan
	actGrant
	actOpen
	actClose
	actStart
	actStop
	actRun
	actUpload
	actDispatch
	actJoin
	actSign
)

// englishActs and foreignActs map folded words to acts: English in its base form, the
// other languages in the forms in which people ask. A word of many meanings has them
// all.
var englishActs, foreignActs = actionTable(map[action]string{
	actRead:     "collect compile gather disclose reveal export read get fetch retrieve list search find lookup look query show view check describe see display summarize summarise obtain access open load download extract inspect analyze browse locate pull provide tell give print output navigate visit scan grab copy dump examine review | lies lese finde suche zeige hole liste abrufe rufe lis lire trouve trouvez cherche cherchez recupere recuperez affiche montre obtiens obtenez lee leer busca buscar encuentra muestra obten obtenga recupera recuperar lista leggi leggere trova cerca mostra ottieni elenca leia ler busque encontre mostre obtenha zoek toon haal znajdz pokaz pobierz прочитай прочитайте найди найдите покажи покажите получи получите ver mostrar consultar consulta listar encontrar anzeigen auflisten abfragen abrufen holen finden suchen lesen zeigen öffne öffnen abre ouvre consulter afficher lister chercher obtenir voir cercare visualizza visualizzare recuperare ottenere procurar aprire apri zeig such find sieh schau nenne öffnet exportiere exportieren exporta exportar exporte exporter consulte exportiere exportieren durchsuche öffne liest ruft sucht consulte consultez exporte exportez exporta exporter descarga revisa revise abre apri ouvre esporta recupere leelo leela leelos читает открой",
	actSend:     "disclose reveal escalate text hand submit circulate say paste post announce publish send email mail message sms forward share notify tell inform reply respond transmit deliver ping contact alert relay pass cc bcc dm write answer report leak exfiltrate return nudge chase remind confirm thank congratulate apologize acknowledge | sende senden schicke schicken sendet schickt weiterleite leite verschicke maile antworte teile informiere benachrichtige envoie envoyer envoyez transmets transmettez transfere transferez partage partagez reponds repondez informe informez envia enviar envie envien manda mandar mande reenvia reenviar reenvie comparte compartir notifica notificar responde responder invia inviare inviate inoltra inoltrare spedisci condividi rispondi informa encaminhe encaminhar compartilhe compartilhar responda notifique stuur stuurt verstuur doorsturen deel antwoord wyslij wyslijcie przeslij przekaz udostepnij odpowiedz отправь отправьте отправить перешли перешлите пришли ответь сообщи gonder gonderin ilet paylas gui kirim kirimkan teruskan skicka posla odeslat schreiben enviarle avisar avisa comunica decir dile diselo dire prévenir previens informer scrivere scrivi escrever enviare rispondere schreib gib melde melden mitteilen weiterleiten verschicken abschicken schick send envialo enviala envialos envialas mandalo mandala envoie-le schicks envialo envialos enviala envialas mandalo mandalos mandala mandalas reenvialo reenvialos pasalo pasalos invialo inviali inviala mandali inoltralo inoltra leitet transmet encaminha отправляет пересылает",
	actPublish:  "publish post tweet broadcast announce retweet blog release upload | veroffentliche poste publie publiez publica publicar publique pubblica pubblicare publiceer opublikuj опубликуй опубликуйте",
	actPay:      "waive compensate settle repay owe owes debt pay transfer wire remit refund donate deposit withdraw reimburse venmo zelle credit charge disburse payment payout transaction | uberweise uberweisen uberweist zahle zahlen bezahle bezahlen spende paie payer payez paye virer verse versez transferer virement paga pagar pague transfiere transferir transfiera deposita depositar retira retirar dona trasferisci trasferire bonifica versa preleva transfira deposite retire doe betaal betalen overmaak zaplac przelej przelac переведи переведите перевести заплати оплати оплатите ode odeyin transfer bayar bizum bonifico ueberweisung überweisung transferencia auszahlen auszahlung zahl überweis devuelve devolver erstatten erstatte rembourse rembourser rimborsa überweist bezahlt zahlt vire bonifica платит переводит",
	actTrade:    "sell liquidate trade invest swap exchange convert stake short buy | verkaufe vends vendez vende vender venda vendi investiere",
	actBuy:      "buy purchase order checkout subscribe rent acquire | kaufe kaufen bestelle bestellen achete achetez commande commandez compra comprar compre acquista ordina koop bestel kup zamow купи купите закажи acheter acquistare pedir commander ordinare kauft bestellt encomenda achète покупает заказывает",
	actDelete:   "prune drop discard rid trash delete remove erase destroy purge wipe clear unlink truncate uninstall shred empty strip rm |  | losche loschen losch entferne entfernen vernichte supprime supprimer supprimez efface effacez enleve retire elimina eliminar elimine borra borrar borre quita suprime cancella cancellare rimuovi rimuovere apague apagar exclua excluir remova remover verwijder wis usun usunac skasuj удали удалите удалить сотри sil silin kaldir xoa hapus loeschen eliminare lösch entfern enlever quitar löscht entfernt exclui rimuove apaga удаляет",
	actEnd:      "discharge waive expire retire withdraw hand resign cancel revoke terminate abort unsubscribe leave quit close end suspend drop unfollow unfriend reject decline dismiss fire block ban |  | storniere kundige beende widerrufe annule annulez resilie resiliez cancela cancelar cancele anula revoca annulla disdici revogue annuleer odwolaj anuluj отмени отмените iptal kündigen kündigung stornieren absagen resilier annuler rescindir anular annullare disdire kündig absage widerrufen beenden kündigt storniert beendet widerruft disdice encerra rescinde отменяет",
	actCreate:   "issue file book request paste enter prescribe create add make insert write save append store generate draft compose register record put log new open place | erstelle erstellen lege fuge hinzufuge speichere schreibe cree creez creer ajoute ajoutez enregistre redige crea crear agrega anade guarda escribe aggiungi creare salva scrivi crie criar adicione adicionar salve escreva maak voeg utworz dodaj zapisz создай создайте добавь добавьте olustur ekle anlegen eintragen eintrag hinzufügen hinterlegen buchen registrar registre agregar añadir créer ajouter enregistrer aggiungere inserire trage trag eröffnen añade agende inscribe inscribir erstellt legt trägt fügt ajoute adiciona aggiunge создает добавляет",
	actUpdate:   "redirect reroute divert reassign raise extend renew upgrade downgrade freeze lift assign label tag merge scale update change modify edit set replace rename patch alter correct adjust reset configure overwrite fix switch increase decrease lower amend rewrite manage mark put rotate turn | andere andern aktualisiere setze ersetze change changez modifie modifiez mets mettez remplace cambia cambiar cambie actualiza actualizar modifica modificar aggiorna cambiare sostituisci altere alterar atualize atualizar mude wijzig verander zmien zaktualizuj измени измените обнови поменяй degistir guncelle ändern aktualisieren setzen anpassen changer modifier mettre modificare aggiornare setz stelle stell einstellen setzt ändert aktualisiert stellt altera atualiza меняет изменяет",
	actMove:     "redirect reroute divert shift postpone push move copy archive relocate migrate duplicate transfer rename | verschiebe kopiere deplace deplacez copie copiez mueve mover copia copiar sposta copiare mova verplaats przenies skopiuj перемести скопируй",
	actPlan:     "schedule book reserve plan arrange appoint reschedule calendar invite remind plane | buche reserviere vereinbare reserve reservez planifie reserva reservar agenda agendar programa prenota prenotare pianifica agende boek plan zarezerwuj umow забронируй запланируй buchen reservieren vereinbaren reserver réserver einplanen termin",
	actGrant:    "grant allow permit authorize authorise approve share give invite assign promote add elevate enable unblock whitelist |  | gewahre erlaube genehmige teile lade accorde autorise autorisez partage invite concede autoriza comparte invita concedi autorizza condividi conceda autorize compartilhe convide verleen udziel zapros предоставь разреши freigeben freigabe gewähren berechtigen autorizar autorisieren autoriser autorizzare permitir permettre compartir conceder erlaub freischalten gewährt erteilt condivide compartilha предоставляет",
	actOpen:     "unlock open disarm unblock release | entriegle offne deverrouille ouvre ouvrez abre abrir desbloquea sblocca apri abra desbloqueie open ontgrendel otworz odblokuj открой откройте разблокируй aufschließen aufsperren öffnen ouvrir aprire entriegeln öffnet entriegelt apre sblocca destranca",
	actClose:    "lock close arm shut secure | sperre verriegle schliesse ferme fermez verrouille cierra bloquea chiudi blocca feche tranque sluit zamknij zablokuj закрой заблокируй schließen abschließen cerrar fermer chiudere",
	actStart:    "restart reboot rollout enable activate start launch boot resume turn play arm begin trigger | aktiviere starte active activez demarre activa activar inicia attiva avvia ative inicie activeer wlacz uruchom включи включите запусти einschalten activer attivare encender allumer accendere schalte",
	actStop:     "disarm disable deactivate stop pause halt shutdown mute silence kill turn suspend | deaktiviere stoppe desactive desactivez arrete desactiva desactivar deten disattiva ferma desative pare schakel wylacz выключи отключи отключите останови ausschalten abschalten désactiver disattivare apagar éteindre spegnere deaktiviert schaltet desativa отключает выключает kapat",
	actRun:      "run execute exec install launch start eval build invoke deploy call compile apply | fuhre installiere execute executez lance lancez installe ejecuta ejecutar instala esegui installa instale voer uruchom zainstaluj выполни выполните запусти установи calistir ausführen starten exécuter eseguire führ",
	actUpload:   "upload attach push submit sync backup import | lade hochlade televerse joins sube subir carga carica allega envie anexe upload zaladuj загрузи загрузите yukle",
	actDispatch: "redirect reroute divert guide lead steer escalate dispatch deploy send drive go move bring deliver ship direct route drone | fahre conduis conduce guida dirija",
	actJoin:     "heart join follow like subscribe star react vote rate review enroll register comment | trete folge rejoins suis unete sigue unisciti segui siga curta",
	actSign:     "approve issue prescribe certify hand sign accept agree confirm submit acknowledge login signin authenticate verify | unterschreibe bestatige signe confirme accepte firma confirma acepta conferma accetta assine unterschreibt bestätigt assina подписывает",
})

// phrases are acts in languages that write no spaces between words, or that change a
// word's front as well as its end.
var phrases = []struct {
	text string
	act  action
}{
	{"发送", actSend},
	{"发给", actSend},
	{"转发", actSend},
	{"寄给", actSend},
	{"發送", actSend},
	{"轉發", actSend},
	{"回复", actSend},
	{"分享", actSend | actGrant},
	{"通知", actSend},
	{"送信", actSend},
	{"送って", actSend},
	{"転送", actSend},
	{"メール", actSend},
	{"共有", actSend | actGrant},
	{"보내", actSend},
	{"전송", actSend},
	{"전달", actSend},
	{"공유", actSend | actGrant},
	{"أرسل", actSend},
	{"ارسل", actSend},
	{"إرسال", actSend},
	{"भेज", actSend},
	{"পাঠা", actSend},
	{"ส่ง", actSend},
	{"gửi", actSend},
	{"转账", actPay},
	{"汇款", actPay},
	{"支付", actPay},
	{"付款", actPay},
	{"轉帳", actPay},
	{"振り込", actPay},
	{"送金", actPay},
	{"支払", actPay},
	{"송금", actPay},
	{"이체", actPay},
	{"결제", actPay},
	{"حول", actPay},
	{"ادفع", actPay},
	{"भुगतान", actPay},
	{"โอน", actPay},
	{"chuyển", actPay},
	{"删除", actDelete},
	{"刪除", actDelete},
	{"清空", actDelete},
	{"移除", actDelete},
	{"削除", actDelete},
	{"消去", actDelete},
	{"삭제", actDelete},
	{"제거", actDelete},
	{"احذف", actDelete},
	{"حذف", actDelete},
	{"हटा", actDelete},
	{"মুছ", actDelete},
	{"ลบ", actDelete},
	{"xóa", actDelete},
	{"创建", actCreate},
	{"添加", actCreate},
	{"新建", actCreate},
	{"作成", actCreate},
	{"追加", actCreate},
	{"만들", actCreate},
	{"추가", actCreate},
	{"أنشئ", actCreate},
	{"أضف", actCreate},
	{"बना", actCreate},
	{"更改", actUpdate},
	{"修改", actUpdate},
	{"更新", actUpdate},
	{"变更", actUpdate},
	{"変更", actUpdate},
	{"변경", actUpdate},
	{"수정", actUpdate},
	{"غير", actUpdate},
	{"बदल", actUpdate},
	{"取消", actEnd},
	{"キャンセル", actEnd},
	{"취소", actEnd},
	{"ألغ", actEnd},
	{"रद्द", actEnd},
	{"购买", actBuy},
	{"下单", actBuy},
	{"購入", actBuy},
	{"注文", actBuy},
	{"구매", actBuy},
	{"주문", actBuy},
	{"اشتر", actBuy},
	{"खरीद", actBuy},
	{"运行", actRun},
	{"执行", actRun},
	{"執行", actRun},
	{"実行", actRun},
	{"실행", actRun},
	{"نفذ", actRun},
	{"شغل", actRun},
	{"चला", actRun},
	{"解锁", actOpen},
	{"打开", actOpen},
	{"開け", actOpen},
	{"解錠", actOpen},
	{"열어", actOpen},
	{"افتح", actOpen},
	{"खोल", actOpen},
	{"发布", actPublish},
	{"投稿", actPublish},
	{"게시", actPublish},
	{"انشر", actPublish},
	{"上传", actUpload},
	{"アップロード", actUpload},
	{"업로드", actUpload},
	{"授权", actGrant},
	{"邀请", actGrant},
	{"招待", actGrant},
	{"초대", actGrant},
	{"禁用", actStop},
	{"关闭", actStop | actClose},
	{"無効", actStop},
	{"비활성", actStop},
	{"عطل", actStop},
	{"缩容", actUpdate},
	{"扩容", actUpdate},
	{"导出", actRead},
	{"評論", actSend},
	{"评论", actSend | actCreate},
	{"预订", actPlan},
	{"予約", actPlan},
	{"予约", actPlan},
	{"重启", actStart},
	{"合并", actUpdate},
	{"点赞", actJoin},
	{"设置", actUpdate},
	{"設定", actUpdate},
	{"調整", actUpdate},
	{"확인", actRead},
	{"読", actRead},
	{"調べ", actRead},
	{"公开", actPublish | actGrant},
	{"公開", actPublish | actGrant},
	{"读取", actRead},
	{"查找", actRead},
	{"获取", actRead},
	{"検索", actRead},
	{"取得", actRead},
	{"읽", actRead},
	{"검색", actRead},
	{"اقرأ", actRead},
	{"ابحث", actRead},
	{"पढ़", actRead},
	{"खोज", actRead},
}

// phraseScreen finds the phrases of each of phraseActs.
var phraseScreen, phraseActs = func() (*regex.Screen, []action) {
	byAct := make(map[action][]string)
	for _, p := range phrases {
		byAct[p.act] = append(byAct[p.act], p.text)
	}
	acts := slices.Sorted(maps.Keys(byAct))
	patterns := make([]*regex.Expression, len(acts))
	for i, a := range acts {
		patterns[i] = regex.AnyOf(byAct[a])
	}
	return regex.NewScreen(patterns...), acts
}()

// actionTable reads lists of English words and, after a bar, of those of other
// languages. A word of both is taken for the English one.
// actOf returns the acts that a word of a tool's name stands for. Names are written
// without accents.
func actOf(w string) action {
	if a := englishActs[w]; a != 0 {
		return a
	}
	if a := foreignActs[w]; a != 0 {
		return a
	}
	return foreignActs[umlauts.Replace(w)]
}

var umlauts = strings.NewReplacer("ae", "a", "oe", "o", "ue", "u")

func actionTable(words map[action]string) (english, foreign map[string]action) {
	english, foreign = make(map[string]action), make(map[string]action)
	for a, list := range words {
		ours, others, _ := strings.Cut(list, "|")
		for w := range strings.FieldsSeq(ours) {
			english[w] |= a
		}
		for w := range strings.FieldsSeq(others) {
			foreign[foldText(w)] |= a
		}
	}
	for w := range english {
		delete(foreign, w)
	}
	return english, foreign
}

// actsOfStem is for texts that mention an act in whatever form: deleted, deletion.
var actsOfStem = func() map[string]action {
	out := make(map[string]action)
	for w, a := range englishActs {
		if !alsoNouns[w] {
			out[stem(w)] |= a
		}
	}
	return out
}()

// alsoNouns are words that are acts only where a verb stands: "email Ann", and not "the
// last email".
var alsoNouns = words("email mail message text sms order post book share call note comment review report lock access alarm document check request reply answer contact tip deposit trade plan store address look list search query view change update upload download transfer purchase refund payment payout transaction charge credit release visit copy move record schedule calendar invite alert tweet log load set show output display print return run start stop end close open block ban new place mark vote rate star import stake short rent hand exchange convert cc bcc dm blog ping drive route ship direct go secure play pass draft register sign lower turn empty clear trash patch permit wire split dump credit pull push backup attach sync scan like rate water cool heat dim ring link pin format estimate stat poll track head select stock sign control glob cat tail measure forecast return follow sound trigger process state label tag lift lead issue file push shift raise")

// stem takes the endings from an English word, roughly: two forms of one word become
// equal, and it does not matter what they become.
func stem(w string) string {
	if len(w) < 4 || w[len(w)-1] >= 0x80 {
		return strings.TrimSuffix(w, "s")
	}
	for _, ending := range endings[w[len(w)-1]] {
		if cut := len(w) - len(ending); cut >= 3 && w[cut:] == ending {
			w = w[:cut]
			break
		}
	}
	if n := len(w); n > 3 && (w[n-1] == w[n-2] || w[n-1] == 'i' || w[n-1] == 'e') {
		w = w[:n-1]
	}
	return w
}

// endings of English words by their last letter, the longest first.
var endings = [0x80][]string{
	'd': {"ied", "ed"},
	'e': {"e"},
	'g': {"ing"},
	'n': {"ation", "ion"},
	'r': {"er"},
	's': {"ations", "ions", "ments", "ings", "ies", "ers", "es", "s"},
	't': {"ment"},
	'y': {"y"},
}
