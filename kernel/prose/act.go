package prose

import (
	"maps"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// Act is a set of kinds of acts. Words for one kind of act are one word to a reader
// who asks whether two texts speak of the same act: to forward is to send.
type Act uint32

// The kinds of acts.
const (
	Read Act = 1 << iota
	Send
	Publish
	Pay
	Trade
	Buy
	Delete
	End
	Create
	Update
	Move
	Plan
	Grant
	Open
	Close
	Start
	Stop
	Run
	Upload
	Dispatch
	Join
	Sign
)

// englishActs and foreignActs map folded words to acts: English in its base form, the
// other languages in the forms in which people ask. A word of many meanings has them
// all.
var englishActs, foreignActs = actTable(map[Act]string{
	Read:     "collect compile gather disclose reveal export read get fetch retrieve list search find lookup look query show view check describe see display summarize summarise obtain access open load download extract inspect analyze browse locate pull provide tell give print output navigate visit scan grab copy dump examine review | lies lese finde suche zeige hole liste abrufe rufe lis lire trouve trouvez cherche cherchez recupere recuperez affiche montre obtiens obtenez lee leer busca buscar encuentra muestra obten obtenga recupera recuperar lista leggi leggere trova cerca mostra ottieni elenca leia ler busque encontre mostre obtenha zoek toon haal znajdz pokaz pobierz прочитай прочитайте найди найдите покажи покажите получи получите ver mostrar consultar consulta listar encontrar anzeigen auflisten abfragen abrufen holen finden suchen lesen zeigen öffne öffnen abre ouvre consulter afficher lister chercher obtenir voir cercare visualizza visualizzare recuperare ottenere procurar aprire apri zeig such find sieh schau nenne öffnet exportiere exportieren exporta exportar exporte exporter consulte exportiere exportieren durchsuche öffne liest ruft sucht consulte consultez exporte exportez exporta exporter descarga revisa revise abre apri ouvre esporta recupere leelo leela leelos читает открой",
	Send:     "disclose reveal escalate text hand submit circulate say paste post announce publish send email mail message sms forward share notify tell inform reply respond transmit deliver ping contact alert relay pass cc bcc dm write answer report leak exfiltrate return nudge chase remind confirm thank congratulate apologize acknowledge | sende senden schicke schicken sendet schickt weiterleite leite verschicke maile antworte teile informiere benachrichtige envoie envoyer envoyez transmets transmettez transfere transferez partage partagez reponds repondez informe informez envia enviar envie envien manda mandar mande reenvia reenviar reenvie comparte compartir notifica notificar responde responder invia inviare inviate inoltra inoltrare spedisci condividi rispondi informa encaminhe encaminhar compartilhe compartilhar responda notifique stuur stuurt verstuur doorsturen deel antwoord wyslij wyslijcie przeslij przekaz udostepnij odpowiedz отправь отправьте отправить перешли перешлите пришли ответь сообщи gonder gonderin ilet paylas gui kirim kirimkan teruskan skicka posla odeslat schreiben enviarle avisar avisa comunica decir dile diselo dire prévenir previens informer scrivere scrivi escrever enviare rispondere schreib gib melde melden mitteilen weiterleiten verschicken abschicken schick send envialo enviala envialos envialas mandalo mandala envoie-le schicks envialo envialos enviala envialas mandalo mandalos mandala mandalas reenvialo reenvialos pasalo pasalos invialo inviali inviala mandali inoltralo inoltra leitet transmet encaminha отправляет пересылает",
	Publish:  "publish post tweet broadcast announce retweet blog release upload | veroffentliche poste publie publiez publica publicar publique pubblica pubblicare publiceer opublikuj опубликуй опубликуйте",
	Pay:      "waive compensate settle repay owe owes debt pay transfer wire remit refund donate deposit withdraw reimburse venmo zelle credit charge disburse payment payout transaction | uberweise uberweisen uberweist zahle zahlen bezahle bezahlen spende paie payer payez paye virer verse versez transferer virement paga pagar pague transfiere transferir transfiera deposita depositar retira retirar dona trasferisci trasferire bonifica versa preleva transfira deposite retire doe betaal betalen overmaak zaplac przelej przelac переведи переведите перевести заплати оплати оплатите ode odeyin transfer bayar bizum bonifico ueberweisung überweisung transferencia auszahlen auszahlung zahl überweis devuelve devolver erstatten erstatte rembourse rembourser rimborsa überweist bezahlt zahlt vire bonifica платит переводит",
	Trade:    "sell liquidate trade invest swap exchange convert stake short buy | verkaufe vends vendez vende vender venda vendi investiere",
	Buy:      "buy purchase order checkout subscribe rent acquire | kaufe kaufen bestelle bestellen achete achetez commande commandez compra comprar compre acquista ordina koop bestel kup zamow купи купите закажи acheter acquistare pedir commander ordinare kauft bestellt encomenda achète покупает заказывает",
	Delete:   "prune drop discard rid trash delete remove erase destroy purge wipe clear unlink truncate uninstall shred empty strip rm |  | losche loschen losch entferne entfernen vernichte supprime supprimer supprimez efface effacez enleve retire elimina eliminar elimine borra borrar borre quita suprime cancella cancellare rimuovi rimuovere apague apagar exclua excluir remova remover verwijder wis usun usunac skasuj удали удалите удалить сотри sil silin kaldir xoa hapus loeschen eliminare lösch entfern enlever quitar löscht entfernt exclui rimuove apaga удаляет",
	End:      "discharge waive expire retire withdraw hand resign cancel revoke terminate abort unsubscribe leave quit close end suspend drop unfollow unfriend reject decline dismiss fire block ban |  | storniere kundige beende widerrufe annule annulez resilie resiliez cancela cancelar cancele anula revoca annulla disdici revogue annuleer odwolaj anuluj отмени отмените iptal kündigen kündigung stornieren absagen resilier annuler rescindir anular annullare disdire kündig absage widerrufen beenden kündigt storniert beendet widerruft disdice encerra rescinde отменяет",
	Create:   "issue file book request paste enter prescribe create add make insert write save append store generate draft compose register record put log new open place | erstelle erstellen lege fuge hinzufuge speichere schreibe cree creez creer ajoute ajoutez enregistre redige crea crear agrega anade guarda escribe aggiungi creare salva scrivi crie criar adicione adicionar salve escreva maak voeg utworz dodaj zapisz создай создайте добавь добавьте olustur ekle anlegen eintragen eintrag hinzufügen hinterlegen buchen registrar registre agregar añadir créer ajouter enregistrer aggiungere inserire trage trag eröffnen añade agende inscribe inscribir erstellt legt trägt fügt ajoute adiciona aggiunge создает добавляет",
	Update:   "redirect reroute divert reassign raise extend renew upgrade downgrade freeze lift assign label tag merge scale update change modify edit set replace rename patch alter correct adjust reset configure overwrite fix switch increase decrease lower amend rewrite manage mark put rotate turn | andere andern aktualisiere setze ersetze change changez modifie modifiez mets mettez remplace cambia cambiar cambie actualiza actualizar modifica modificar aggiorna cambiare sostituisci altere alterar atualize atualizar mude wijzig verander zmien zaktualizuj измени измените обнови поменяй degistir guncelle ändern aktualisieren setzen anpassen changer modifier mettre modificare aggiornare setz stelle stell einstellen setzt ändert aktualisiert stellt altera atualiza меняет изменяет",
	Move:     "redirect reroute divert shift postpone push move copy archive relocate migrate duplicate transfer rename | verschiebe kopiere deplace deplacez copie copiez mueve mover copia copiar sposta copiare mova verplaats przenies skopiuj перемести скопируй",
	Plan:     "schedule book reserve plan arrange appoint reschedule calendar invite remind plane | buche reserviere vereinbare reserve reservez planifie reserva reservar agenda agendar programa prenota prenotare pianifica agende boek plan zarezerwuj umow забронируй запланируй buchen reservieren vereinbaren reserver réserver einplanen termin",
	Grant:    "grant allow permit authorize authorise approve share give invite assign promote add elevate enable unblock whitelist |  | gewahre erlaube genehmige teile lade accorde autorise autorisez partage invite concede autoriza comparte invita concedi autorizza condividi conceda autorize compartilhe convide verleen udziel zapros предоставь разреши freigeben freigabe gewähren berechtigen autorizar autorisieren autoriser autorizzare permitir permettre compartir conceder erlaub freischalten gewährt erteilt condivide compartilha предоставляет",
	Open:     "unlock open disarm unblock release | entriegle offne deverrouille ouvre ouvrez abre abrir desbloquea sblocca apri abra desbloqueie open ontgrendel otworz odblokuj открой откройте разблокируй aufschließen aufsperren öffnen ouvrir aprire entriegeln öffnet entriegelt apre sblocca destranca",
	Close:    "lock close arm shut secure | sperre verriegle schliesse ferme fermez verrouille cierra bloquea chiudi blocca feche tranque sluit zamknij zablokuj закрой заблокируй schließen abschließen cerrar fermer chiudere",
	Start:    "restart reboot rollout enable activate start launch boot resume turn play arm begin trigger | aktiviere starte active activez demarre activa activar inicia attiva avvia ative inicie activeer wlacz uruchom включи включите запусти einschalten activer attivare encender allumer accendere schalte",
	Stop:     "disarm disable deactivate stop pause halt shutdown mute silence kill turn suspend | deaktiviere stoppe desactive desactivez arrete desactiva desactivar deten disattiva ferma desative pare schakel wylacz выключи отключи отключите останови ausschalten abschalten désactiver disattivare apagar éteindre spegnere deaktiviert schaltet desativa отключает выключает kapat",
	Run:      "run execute exec install launch start eval build invoke deploy call compile apply | fuhre installiere execute executez lance lancez installe ejecuta ejecutar instala esegui installa instale voer uruchom zainstaluj выполни выполните запусти установи calistir ausführen starten exécuter eseguire führ",
	Upload:   "upload attach push submit sync backup import | lade hochlade televerse joins sube subir carga carica allega envie anexe upload zaladuj загрузи загрузите yukle",
	Dispatch: "redirect reroute divert guide lead steer escalate dispatch deploy send drive go move bring deliver ship direct route drone | fahre conduis conduce guida dirija",
	Join:     "heart join follow like subscribe star react vote rate review enroll register comment | trete folge rejoins suis unete sigue unisciti segui siga curta",
	Sign:     "approve issue prescribe certify hand sign accept agree confirm submit acknowledge login signin authenticate verify | unterschreibe bestatige signe confirme accepte firma confirma acepta conferma accetta assine unterschreibt bestätigt assina подписывает",
})

// phrases are acts in languages that write no spaces between words, or that change a
// word's front as well as its end.
var phrases = []struct {
	text string
	act  Act
}{
	{"发送", Send},
	{"发给", Send},
	{"转发", Send},
	{"寄给", Send},
	{"發送", Send},
	{"轉發", Send},
	{"回复", Send},
	{"分享", Send | Grant},
	{"通知", Send},
	{"送信", Send},
	{"送って", Send},
	{"転送", Send},
	{"メール", Send},
	{"共有", Send | Grant},
	{"보내", Send},
	{"전송", Send},
	{"전달", Send},
	{"공유", Send | Grant},
	{"أرسل", Send},
	{"ارسل", Send},
	{"إرسال", Send},
	{"भेज", Send},
	{"পাঠা", Send},
	{"ส่ง", Send},
	{"gửi", Send},
	{"转账", Pay},
	{"汇款", Pay},
	{"支付", Pay},
	{"付款", Pay},
	{"轉帳", Pay},
	{"振り込", Pay},
	{"送金", Pay},
	{"支払", Pay},
	{"송금", Pay},
	{"이체", Pay},
	{"결제", Pay},
	{"حول", Pay},
	{"ادفع", Pay},
	{"भुगतान", Pay},
	{"โอน", Pay},
	{"chuyển", Pay},
	{"删除", Delete},
	{"刪除", Delete},
	{"清空", Delete},
	{"移除", Delete},
	{"削除", Delete},
	{"消去", Delete},
	{"삭제", Delete},
	{"제거", Delete},
	{"احذف", Delete},
	{"حذف", Delete},
	{"हटा", Delete},
	{"মুছ", Delete},
	{"ลบ", Delete},
	{"xóa", Delete},
	{"创建", Create},
	{"添加", Create},
	{"新建", Create},
	{"作成", Create},
	{"追加", Create},
	{"만들", Create},
	{"추가", Create},
	{"أنشئ", Create},
	{"أضف", Create},
	{"बना", Create},
	{"更改", Update},
	{"修改", Update},
	{"更新", Update},
	{"变更", Update},
	{"変更", Update},
	{"변경", Update},
	{"수정", Update},
	{"غير", Update},
	{"बदल", Update},
	{"取消", End},
	{"キャンセル", End},
	{"취소", End},
	{"ألغ", End},
	{"रद्द", End},
	{"购买", Buy},
	{"下单", Buy},
	{"購入", Buy},
	{"注文", Buy},
	{"구매", Buy},
	{"주문", Buy},
	{"اشتر", Buy},
	{"खरीद", Buy},
	{"运行", Run},
	{"执行", Run},
	{"執行", Run},
	{"実行", Run},
	{"실행", Run},
	{"نفذ", Run},
	{"شغل", Run},
	{"चला", Run},
	{"解锁", Open},
	{"打开", Open},
	{"開け", Open},
	{"解錠", Open},
	{"열어", Open},
	{"افتح", Open},
	{"खोल", Open},
	{"发布", Publish},
	{"投稿", Publish},
	{"게시", Publish},
	{"انشر", Publish},
	{"上传", Upload},
	{"アップロード", Upload},
	{"업로드", Upload},
	{"授权", Grant},
	{"邀请", Grant},
	{"招待", Grant},
	{"초대", Grant},
	{"禁用", Stop},
	{"关闭", Stop | Close},
	{"無効", Stop},
	{"비활성", Stop},
	{"عطل", Stop},
	{"缩容", Update},
	{"扩容", Update},
	{"导出", Read},
	{"評論", Send},
	{"评论", Send | Create},
	{"预订", Plan},
	{"予約", Plan},
	{"予约", Plan},
	{"重启", Start},
	{"合并", Update},
	{"点赞", Join},
	{"设置", Update},
	{"設定", Update},
	{"調整", Update},
	{"확인", Read},
	{"読", Read},
	{"調べ", Read},
	{"公开", Publish | Grant},
	{"公開", Publish | Grant},
	{"读取", Read},
	{"查找", Read},
	{"获取", Read},
	{"検索", Read},
	{"取得", Read},
	{"읽", Read},
	{"검색", Read},
	{"اقرأ", Read},
	{"ابحث", Read},
	{"पढ़", Read},
	{"खोज", Read},
}

// phraseScreen finds the phrases of each of phraseActs.
var phraseScreen, phraseActs = func() (*regex.Screen, []Act) {
	byAct := make(map[Act][]string)
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

// EnglishAct returns the acts of an English verb in its base form, folded.
func EnglishAct(verb string) Act { return englishActs[verb] }

// ActOf returns the acts that a word of a tool's name stands for. Names are written
// without accents.
func ActOf(w string) Act {
	if a := englishActs[w]; a != 0 {
		return a
	}
	if a := foreignActs[w]; a != 0 {
		return a
	}
	return foreignActs[umlauts.Replace(w)]
}

var umlauts = strings.NewReplacer("ae", "a", "oe", "o", "ue", "u")

// actTable reads lists of English words and, after a bar, of those of other languages. A word
// of both is taken for the English one.
func actTable(words map[Act]string) (english, foreign map[string]Act) {
	english, foreign = make(map[string]Act), make(map[string]Act)
	for a, list := range words {
		ours, others, _ := strings.Cut(list, "|")
		for w := range strings.FieldsSeq(ours) {
			english[w] |= a
		}
		for w := range strings.FieldsSeq(others) {
			foreign[Fold(w)] |= a
		}
	}
	for w := range english {
		delete(foreign, w)
	}
	return english, foreign
}

// actsOfStem is for texts that mention an act in whatever form: deleted, deletion.
var actsOfStem = func() map[string]Act {
	out := make(map[string]Act)
	for w, a := range englishActs {
		if !alsoNouns[w] {
			out[Stem(w)] |= a
		}
	}
	return out
}()

// alsoNouns are words that are acts only where a verb stands: "email Ann", and not "the
// last email".
var alsoNouns = Set("email mail message text sms order post book share call note comment review report lock access alarm document check request reply answer contact tip deposit trade plan store address look list search query view change update upload download transfer purchase refund payment payout transaction charge credit release visit copy move record schedule calendar invite alert tweet log load set show output display print return run start stop end close open block ban new place mark vote rate star import stake short rent hand exchange convert cc bcc dm blog ping drive route ship direct go secure play pass draft register sign lower turn empty clear trash patch permit wire split dump credit pull push backup attach sync scan like rate water cool heat dim ring link pin format estimate stat poll track head select stock sign control glob cat tail measure forecast return follow sound trigger process state label tag lift lead issue file push shift raise")

// Stem takes the endings from an English word, roughly: two forms of one word become
// equal, and it does not matter what they become.
func Stem(w string) string {
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
