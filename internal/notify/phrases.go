package notify

// phrases holds the texts by language and by kind, or by kind and event if the event has a text of its own.
var phrases = map[string]map[string]phrase{English: english, Chinese: chinese}

var english = map[string]phrase{
	"break-glass": newPhrase(
		`{{.ID}}: {{.Actor}} opened access in an emergency: {{.Subject}}`,
		`{{.Actor}} opened this access by break-glass. It is in force now, before anybody approved it{{if not .Until.IsZero}}, `+
			`until {{.Clock .Until}}{{end}}. Its review decides whether it stays.`,
	),
	"voided": newPhrase(`{{.ID}}: the approvals are void: {{.Subject}}`,
		`The same request would now grant more access than was shown, so its approvals are void and the steps start again.`),
	"escalated": newPhrase(`{{.ID}}: not decided in time, now it waits for you{{if .For}} (for {{.For}}){{end}}: {{.Subject}}`,
		`{{.Requester}} submitted this request. The step "{{.Step}}" was not decided in time, so it waits for you, too`+
			`{{if .For}}; you decide for {{.For}}{{end}}.`),
	"approval-needed": newPhrase(`{{.ID}}: {{.Requester}} requests your decision{{if .For}} (for {{.For}}){{end}}: {{.Subject}}`,
		`{{.Requester}} submitted this request. The step "{{.Step}}" waits for you{{if .For}}; you decide for {{.For}}{{end}}.`),
	"approval-needed/break-glass": newPhrase(`{{.ID}}: review the break-glass access of {{.Requester}}{{if .For}} (for {{.For}}){{end}}: {{.Subject}}`,
		`{{.Requester}} opened this access in an emergency; it is in force now. It waits for your review{{if .For}}; you decide for {{.For}}{{end}}.`),
	"approval-needed/reminded": newPhrase(`{{.ID}}: still waits for your decision{{if .For}} (for {{.For}}){{end}}: {{.Subject}}`,
		`{{.Requester}} submitted this request. The step "{{.Step}}" still waits for you{{if .For}}; you decide for {{.For}}{{end}}.`),
	"approval-needed/escalated": newPhrase(`{{.ID}}: still waits for your decision{{if .For}} (for {{.For}}){{end}}: {{.Subject}}`,
		`{{.Requester}} submitted this request. The step "{{.Step}}" still waits for you{{if .For}}; you decide for {{.For}}{{end}}.`),
	"rollout": newPhrase(
		`{{.ID}}: {{.Requester}} requests access for your application: {{.Subject}}`,
		`{{.Requester}} requests, for the resource's owners, access that your application was observed to use. `+
			`You need not do anything; you can revoke it.`,
	),
	"rollout/announced": newPhrase(
		`{{.Subject}}: access will be enforced{{if not .Until.IsZero}} from {{.Clock .Until}}{{end}}`,
		`{{.Actor}} announced that only allowed access will pass. Applications of yours were observed as its clients. `+
			`Check that each of them has the access that it needs, and request what is missing.`,
	),
	"rollout/temporary-audit": newPhrase(`{{.Actor}} opened {{.Subject}} until {{.Clock .Until}}`,
		`{{.Actor}} set this resource to temporary audit: everything passes, and what would be refused is reported. `+
			`It ends automatically at {{.Clock .Until}}.`),
	"rollout/temporary-audit-ended": newPhrase(`{{.Actor}} ended the temporary audit of {{.Subject}}`,
		`{{.Actor}} ended the temporary audit: the resource's own mode applies again.`),
	"rollout/downgrade": newPhrase(`{{.Actor}} opened {{if eq .Count 1}}1 resource{{else}}{{.Count}} resources{{end}} in a downgrade until {{.Clock .Until}}`,
		`{{.Actor}} set them to temporary audit: everything passes, and what would be refused is reported. It ends automatically at {{.Clock .Until}}.`),
	"rollout/downgrade-ended": newPhrase(`{{.Actor}} ended a downgrade of {{if eq .Count 1}}1 resource{{else}}{{.Count}} resources{{end}}`,
		`{{.Actor}} ended the downgrade: the modes of the resources apply again.`),
	"rollout/stopped": newPhrase(
		`{{.Subject}}: the rollout was stopped, {{.Count}} new denials in {{.Cluster}}`,
		`{{.Count}} connections of known clients were refused in {{.Cluster}} soon after it began to enforce. `+
			`{{if .Until.IsZero}}Clusters that enforce it continue to do so; requests to enforce it further were ended. Check who was refused: `+
			`grant what is missing, or begin a temporary audit; then arm the guard again.{{else}}So the resource is in temporary audit until `+
			`{{.Clock .Until}}, and requests to enforce it further were ended. Check who was refused, then arm the guard again.{{end}}`,
	),
	"rollout/flows-unwatched": newPhrase(
		`{{.Subject}}: the guard has no flows of {{.Cluster}}`,
		`The flows of {{.Cluster}} are not watched, so refused connections are not reported. This time does not count as quiet: `+
			`the guard watches that much longer. Restore the collection of flows before you enforce further.`,
	),
	"rollout/flows-lost": newPhrase(
		`{{.Subject}}: the guard may not have all flows of {{.Cluster}}`,
		`Flows of {{.Cluster}} were lost, so some refused connections may not be reported. This time does not count as quiet: `+
			`the guard watches that much longer. Check the losses before you enforce further.`,
	),
	"access-review": newPhrase(`Access review: {{.Subject}}`, `Open the review for its state.`),
	"access-review/review-opened": newPhrase(
		`Access review "{{.Comment}}": {{if eq .Count 1}}1 access waits{{else}}{{.Count}} accesses wait{{end}} for your decision until {{.Clock .Until}}`,
		`Each line shows when the access was last used, and a recommendation. What nobody decides by {{.Clock .Until}} is decided as the review says.`,
	),
	"access-review/review-reminded": newPhrase(
		`Reminder: access review "{{.Comment}}": {{if eq .Count 1}}1 access still waits{{else}}`+
			`{{.Count}} accesses still wait{{end}} for your decision until {{.Clock .Until}}`,
		`What nobody decides by {{.Clock .Until}} is decided as the review says.`,
	),
	"access-review/review-reopened": newPhrase(`Access review "{{.Comment}}": your decision is void, because the access changed: {{.Subject}}`,
		`The access was changed before your decision was applied. Look at the line and decide again by {{.Clock .Until}}.`),
	"access-review/review-abandoned": newPhrase(`Access review "{{.Comment}}" could not begin`,
		`Its accesses could not be collected: the page of the review states why. Begin a new review with a smaller scope.`),
	"access-review/review-closed": newPhrase(`Access review "{{.Comment}}" is closed: {{if eq .Count 1}}1 access{{else}}{{.Count}} accesses{{end}}`,
		`Every access of the review has an outcome. The report is on its page.`),
	"failed": newPhrase(`{{.ID}}: not in force: {{.Subject}}`,
		`The approved change is not in force. The ticket states why; it is retried.`),
	"decided": newPhrase(`{{.ID}}: {{.Actor}} approved the step "{{.Step}}": {{.Subject}}`,
		`{{.Actor}}{{if .ActorFor}} (for {{.ActorFor}}){{end}} approved the step "{{.Step}}" of your request.`),
	"decided/approved": newPhrase(`{{.ID}}: approved: {{.Subject}}`,
		`Your request is approved and is being applied.`),
	"decided/step-rejected": newPhrase(`{{.ID}}: {{.Actor}} rejected: {{.Subject}}`,
		`{{.Actor}}{{if .ActorFor}} (for {{.ActorFor}}){{end}} rejected your request in the step "{{.Step}}".`),
	"decided/reviewed": newPhrase(
		`{{.ID}}: {{.Actor}} {{if eq .Step "rejected"}}ended{{else}}confirmed{{end}} your break-glass access: {{.Subject}}`,
		`{{.Actor}}{{if .ActorFor}} (for {{.ActorFor}}){{end}} reviewed your break-glass access: {{if eq .Step "rejected"}}it is being `+
			`revoked{{else}}it remains for the requested time{{end}}.`,
	),
	"effective": newPhrase(`{{.ID}}: in force: {{.Subject}}`,
		`It is in force in every targeted cluster{{if not .Until.IsZero}}, until {{.Clock .Until}}{{end}}.`),
	"revoked": newPhrase(`{{.ID}}: ended: {{.Subject}}`, `It has ended; no cluster has it any more.`),
	"decided/timed-out": newPhrase(
		`{{.ID}}: not decided in time: {{.Subject}}`,
		`The step "{{.Step}}" was not decided in time, so the request is denied. Submit it again if it is still needed.`,
	),
	"revoked/expired": newPhrase(`{{.ID}}: expired: {{.Subject}}`, `This access has expired. Request it again if it is still needed.`),
	"revoked/revoke-requested": newPhrase(`{{.ID}}: {{if .Actor}}{{.Actor}} revoked{{else}}being revoked{{end}}: {{.Subject}}`,
		`{{if .Actor}}{{.Actor}} revoked this access; it{{else}}This access{{end}} is being removed from every cluster.`),
	"expires-soon": newPhrase(`{{.ID}}: expires {{.Clock .Until}}: {{.Subject}}`,
		`This access ends at {{.Clock .Until}}. Extend it before then if it is still needed.`),
	"expires-soon/shortened": newPhrase(`{{.ID}}: shortened, ends {{.Clock .Until}}: {{.Subject}}`,
		`{{if .Actor}}{{.Actor}} shortened this access in a review{{else}}This access was not confirmed in a review, so it was shortened{{end}}. `+
			`It ends at {{.Clock .Until}}. Extend it before then if it is still needed.`),
	"decided-by-colleague": newPhrase(
		`{{.ID}}: {{if .Actor}}{{.Actor}} has decided{{else}}decided{{end}}, no action needed: {{.Subject}}`,
		`The step "{{.Step}}" does not wait for you any more: {{if .Actor}}{{.Actor}}{{if .ActorFor}} (for {{.ActorFor}}){{end}} `+
			`has decided it{{else}}it was decided{{end}}.`,
	),
	"decided-by-colleague/withdrawn": newPhrase(
		`{{.ID}}: withdrawn, no action needed: {{.Subject}}`,
		`{{if .Actor}}{{.Actor}} withdrew the request.{{else}}The request was ended, because the rollout of the resource was stopped.{{end}}`,
	),
	"decided-by-colleague/timed-out": newPhrase(
		`{{.ID}}: not decided in time: {{.Subject}}`,
		`The step "{{.Step}}" does not wait for you any more: it was not decided in time, so the request is denied.`,
	),
	"comment": newPhrase(`{{.ID}}: {{.Actor}} commented: {{.Subject}}`, `{{.Actor}} added a comment to the ticket.`),
	"delegation": newPhrase(`{{.Requester}} lets {{.For}} decide, from {{.Clock .Begin}}`,
		`{{.For}} may decide for {{.Requester}} from {{.Clock .Begin}} until {{.Clock .Until}}.{{if ne .Actor .Requester}} {{.Actor}} set this up.{{end}}`),
	"delegation/ended": newPhrase(`{{.For}} does not decide for {{.Requester}} any more`,
		`{{.Actor}} ended the delegation: {{.For}} may not decide for {{.Requester}} any more.`),
}

var chinese = map[string]phrase{
	"break-glass": newPhrase(`{{.ID}}：{{.Actor}} 紧急开通了访问：{{.Subject}}`,
		`{{.Actor}} 通过紧急通道开通了这项访问。它未经审批即已生效{{if not .Until.IsZero}}，截止 {{.Clock .Until}}{{end}}。事后复核决定是否保留。`),
	"voided": newPhrase(`{{.ID}}：已有的批准作废：{{.Subject}}`,
		`同样的申请现在会带来比当时展示的更多的访问，因此已有的批准作废，各步骤重新开始。`),
	"escalated": newPhrase(`{{.ID}}：无人按时审批，现在也请您审批{{if .For}}（代 {{.For}}）{{end}}：{{.Subject}}`,
		`{{.Requester}} 提出了此申请。步骤“{{.Step}}”等待过久，因此现在也请您审批{{if .For}}；您代 {{.For}} 审批{{end}}。`),
	"approval-needed": newPhrase(`{{.ID}}：{{.Requester}} 请您审批{{if .For}}（代 {{.For}}）{{end}}：{{.Subject}}`,
		`{{.Requester}} 提出了此申请。步骤“{{.Step}}”等待您审批{{if .For}}；您代 {{.For}} 审批{{end}}。`),
	"approval-needed/break-glass": newPhrase(`{{.ID}}：请复核 {{.Requester}} 的紧急访问{{if .For}}（代 {{.For}}）{{end}}：{{.Subject}}`,
		`{{.Requester}} 紧急开通了这项访问，现已生效，等待您复核{{if .For}}；您代 {{.For}} 复核{{end}}。`),
	"approval-needed/reminded": newPhrase(`{{.ID}}：仍在等待您审批{{if .For}}（代 {{.For}}）{{end}}：{{.Subject}}`,
		`{{.Requester}} 提出了此申请。步骤“{{.Step}}”仍在等待您审批{{if .For}}；您代 {{.For}} 审批{{end}}。`),
	"approval-needed/escalated": newPhrase(`{{.ID}}：仍在等待您审批{{if .For}}（代 {{.For}}）{{end}}：{{.Subject}}`,
		`{{.Requester}} 提出了此申请。步骤“{{.Step}}”仍在等待您审批{{if .For}}；您代 {{.For}} 审批{{end}}。`),
	"rollout": newPhrase(`{{.ID}}：{{.Requester}} 申请保留您的应用的访问：{{.Subject}}`,
		`{{.Requester}} 代表资源方申请保留您的应用实际在用的这项访问。您无需处理，也可以回收它。`),
	"rollout/announced": newPhrase(`{{.Subject}}：{{if not .Until.IsZero}}自 {{.Clock .Until}} 起{{else}}即将{{end}}强制访问控制`,
		`{{.Actor}} 宣布今后只放行已授权的访问。您的应用曾访问该资源，请确认每个应用都有所需的权限，缺少的请申请。`),
	"rollout/temporary-audit": newPhrase(`{{.Actor}} 临时放行了 {{.Subject}}，截止 {{.Clock .Until}}`,
		`{{.Actor}} 将该资源设为临时审计：所有访问都放行，本应拒绝的会被记录。{{.Clock .Until}} 自动结束。`),
	"rollout/temporary-audit-ended": newPhrase(`{{.Actor}} 结束了 {{.Subject}} 的临时审计`,
		`{{.Actor}} 结束了临时审计，资源恢复自身的模式。`),
	"rollout/downgrade": newPhrase(`{{.Actor}} 降级放行了 {{.Count}} 个资源，截止 {{.Clock .Until}}`,
		`{{.Actor}} 将它们设为临时审计：全部访问放行，本应拒绝的访问会被记录。到 {{.Clock .Until}} 自动结束。`),
	"rollout/downgrade-ended": newPhrase(`{{.Actor}} 结束了 {{.Count}} 个资源的降级`,
		`{{.Actor}} 结束了降级：各资源恢复自己的模式。`),
	"rollout/stopped": newPhrase(
		`{{.Subject}}：推进已停止，{{.Cluster}} 出现 {{.Count}} 次新的拒绝`,
		`{{.Cluster}} 开始强制后不久，已知客户端有 {{.Count}} 次连接被拒绝。{{if .Until.IsZero}}已强制的集群保持强制，进一步强制的申请已终止。`+
			`请查看谁被拒绝：补上缺少的授权，或开启临时审计；然后重新启用守护。{{else}}因此该资源处于临时审计，截止 {{.Clock .Until}}，`+
			`进一步强制的申请已终止。请查看谁被拒绝，再重新启用守护。{{end}}`,
	),
	"rollout/flows-unwatched": newPhrase(`{{.Subject}}：守护看不到 {{.Cluster}} 中的拒绝`,
		`{{.Cluster}} 的流量没有被观测，那里的拒绝不会显示。这段时间不算作平静，守护会相应延长。继续强制之前，请先恢复观测。`),
	"rollout/flows-lost": newPhrase(`{{.Subject}}：守护可能看不到 {{.Cluster}} 中的全部拒绝`,
		`{{.Cluster}} 丢失了流量记录，那里的拒绝可能没有全部显示。这段时间不算作平静，守护会相应延长。继续强制之前，请先查看丢失情况。`),
	"access-review": newPhrase(`访问复核：{{.Subject}}`, `请打开复核查看状态。`),
	"access-review/review-opened": newPhrase(`访问复核“{{.Comment}}”：{{.Count}} 项访问等待您在 {{.Clock .Until}} 前决定`,
		`每一项都显示最近一次使用时间和建议。到 {{.Clock .Until}} 仍无人决定的，按该复核的规定处理。`),
	"access-review/review-reminded": newPhrase(`提醒：访问复核“{{.Comment}}”仍有 {{.Count}} 项访问等待您在 {{.Clock .Until}} 前决定`,
		`到 {{.Clock .Until}} 仍无人决定的，按该复核的规定处理。`),
	"access-review/review-reopened": newPhrase(`访问复核“{{.Comment}}”：访问有变化，您的决定作废：{{.Subject}}`,
		`该访问在您的决定执行之前有了变化。请在 {{.Clock .Until}} 前查看并重新决定。`),
	"access-review/review-abandoned": newPhrase(`访问复核“{{.Comment}}”无法开始`, `无法收集其访问，原因见复核页面。请缩小范围，新建复核。`),
	"access-review/review-closed":    newPhrase(`访问复核“{{.Comment}}”已结束：共 {{.Count}} 项访问`, `每一项访问都有结果。报告见复核页面。`),
	"failed": newPhrase(`{{.ID}}：没有生效：{{.Subject}}`,
		`已批准的内容没有生效。原因见工单，系统会重试。`),
	"decided": newPhrase(`{{.ID}}：{{.Actor}} 批准了步骤“{{.Step}}”：{{.Subject}}`,
		`{{.Actor}}{{if .ActorFor}}（代 {{.ActorFor}}）{{end}} 批准了您的申请的步骤“{{.Step}}”。`),
	"decided/approved": newPhrase(`{{.ID}}：已批准：{{.Subject}}`,
		`您的申请已批准，正在生效。`),
	"decided/step-rejected": newPhrase(`{{.ID}}：{{.Actor}} 驳回了：{{.Subject}}`,
		`{{.Actor}}{{if .ActorFor}}（代 {{.ActorFor}}）{{end}} 在步骤“{{.Step}}”驳回了您的申请。`),
	"decided/reviewed": newPhrase(`{{.ID}}：{{.Actor}} {{if eq .Step "rejected"}}终止{{else}}确认{{end}}了您的紧急访问：{{.Subject}}`,
		`{{.Actor}}{{if .ActorFor}}（代 {{.ActorFor}}）{{end}} 复核了您的紧急访问：{{if eq .Step "rejected"}}正在收回{{else}}按申请的时长保留{{end}}。`),
	"effective": newPhrase(`{{.ID}}：已生效：{{.Subject}}`,
		`它已在所有目标集群生效{{if not .Until.IsZero}}，截止 {{.Clock .Until}}{{end}}。`),
	"revoked":           newPhrase(`{{.ID}}：已终止：{{.Subject}}`, `它已终止，所有集群都不再有它。`),
	"decided/timed-out": newPhrase(`{{.ID}}：无人按时审批：{{.Subject}}`, `步骤“{{.Step}}”无人按时审批，申请被拒绝。如仍需要，请重新申请。`),
	"revoked/expired":   newPhrase(`{{.ID}}：已到期：{{.Subject}}`, `它已到期。如仍需要，请重新申请。`),
	"revoked/revoke-requested": newPhrase(`{{.ID}}：{{if .Actor}}{{.Actor}} 回收了{{else}}正在收回{{end}}：{{.Subject}}`,
		`{{if .Actor}}{{.Actor}} 回收了这项访问，{{else}}这项访问{{end}}正在从所有集群收回。`),
	"expires-soon": newPhrase(`{{.ID}}：将于 {{.Clock .Until}} 到期：{{.Subject}}`,
		`这项访问将于 {{.Clock .Until}} 终止。如仍需要，请在此之前延期。`),
	"expires-soon/shortened": newPhrase(`{{.ID}}：已缩短，{{.Clock .Until}} 到期：{{.Subject}}`,
		`{{if .Actor}}{{.Actor}} 在复核中缩短了这项访问{{else}}这项访问在复核中无人确认，因此被缩短{{end}}。它将于 {{.Clock .Until}} 终止。如仍需要，请在此之前延期。`),
	"decided-by-colleague": newPhrase(`{{.ID}}：{{if .Actor}}{{.Actor}} 已审批{{else}}已有结果{{end}}，您无需处理：{{.Subject}}`,
		`步骤“{{.Step}}”不再等待您：{{if .Actor}}{{.Actor}}{{if .ActorFor}}（代 {{.ActorFor}}）{{end}} 已审批{{else}}已有结果{{end}}。`),
	"decided-by-colleague/withdrawn": newPhrase(`{{.ID}}：已撤回，您无需处理：{{.Subject}}`, `{{if .Actor}}{{.Actor}} 撤回了申请。{{else}}该资源的推进已停止，申请因此终止。{{end}}`),
	"decided-by-colleague/timed-out": newPhrase(`{{.ID}}：无人按时审批：{{.Subject}}`, `步骤“{{.Step}}”不再等待您：无人按时审批，申请被拒绝。`),
	"comment":                        newPhrase(`{{.ID}}：{{.Actor}} 留言：{{.Subject}}`, `{{.Actor}} 在工单中留言。`),
	"delegation": newPhrase(`{{.Requester}} 委托 {{.For}} 审批，自 {{.Clock .Begin}} 起`,
		`{{.For}} 可代 {{.Requester}} 审批，自 {{.Clock .Begin}} 至 {{.Clock .Until}}。{{if ne .Actor .Requester}}由 {{.Actor}} 设置。{{end}}`),
	"delegation/ended": newPhrase(`{{.For}} 不再代 {{.Requester}} 审批`,
		`{{.Actor}} 终止了委托：{{.For}} 不能再代 {{.Requester}} 审批。`),
}
