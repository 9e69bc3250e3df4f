package notify

import "github.com/acp-io/acp/internal/message"

// messagesByKind has the title and the body of each kind of notification.
var messagesByKind = map[Kind]messagesByEvent{
	KindBreakGlass: {"": breakGlassOpened},
	KindVoided: {"": func(d contentData) (title, body message.Message) {
		return message.NotificationVoidedTitle(d.ticket, d.subject), message.NotificationVoidedBody()
	}},
	KindEscalated: {"": escalated},
	KindNeeded: {
		"":              approvalNeeded,
		"break-glass":   breakGlassReview,
		"reminded":      stillNeeded,
		"last-reminder": lastReminder,
		"escalated":     stillNeeded,
	},
	KindUndecided: {
		"": func(d contentData) (title, body message.Message) {
			return message.NotificationUndecidedTitle(d.ticket, d.subject), message.NotificationUndecidedBody(d.step())
		},
		eventReviewUndecided: func(d contentData) (title, body message.Message) {
			return message.NotificationUndecidedTitle(d.ticket, d.subject), message.NotificationUndecidedBodyReview()
		},
		"schedule-missing": func(d contentData) (title, body message.Message) {
			return message.NotificationUndecidableTitle(d.ticket, d.subject), message.NotificationUndecidableBody(d.step())
		},
	},
	KindFailed: {"": func(d contentData) (title, body message.Message) {
		return message.NotificationFailedTitle(d.ticket, d.subject), message.NotificationFailedBody()
	}},
	KindRollout:      rolloutMessages,
	KindAccessReview: accessReviewMessages,
	KindDecided: {
		"": func(d contentData) (title, body message.Message) {
			return message.NotificationStepApprovedTitle(d.ticket, d.Actor, d.step(), d.subject), message.NotificationStepApprovedBody(d.actor(), d.step())
		},
		"approved": func(d contentData) (title, body message.Message) {
			return message.NotificationApprovedTitle(d.ticket, d.subject), message.NotificationApprovedBody()
		},
		"step-rejected": func(d contentData) (title, body message.Message) {
			return message.NotificationRejectedTitle(d.ticket, d.Actor, d.subject), message.NotificationRejectedBody(d.actor(), d.step())
		},
		"reviewed": breakGlassReviewed,
		"timed-out": func(d contentData) (title, body message.Message) {
			return message.NotificationTimedOutTitle(d.ticket, d.subject), message.NotificationTimedOutBody(d.step())
		},
	},
	KindEffective: {"": effective},
	KindRevoked: {
		"": func(d contentData) (title, body message.Message) {
			return message.NotificationRevokedTitle(d.ticket, d.subject), message.NotificationRevokedBody()
		},
		"expired": func(d contentData) (title, body message.Message) {
			return message.NotificationExpiredTitle(d.ticket, d.subject), message.NotificationExpiredBody()
		},
		"revoke-requested": revokeRequested,
	},
	KindExpires: {
		"": func(d contentData) (title, body message.Message) {
			return message.NotificationExpiresSoonTitle(d.ticket, d.Until, d.subject), message.NotificationExpiresSoonBody(d.Until)
		},
		"shortened": shortened,
	},
	KindColleague: {
		"":          decidedByColleague,
		"withdrawn": withdrawn,
		"timed-out": func(d contentData) (title, body message.Message) {
			return message.NotificationTimedOutTitle(d.ticket, d.subject), message.NotificationTimedOutBodyColleague(d.step())
		},
	},
	KindComment: {"": func(d contentData) (title, body message.Message) {
		return message.NotificationCommentTitle(d.ticket, d.Actor, d.subject), message.NotificationCommentBody(d.Actor)
	}},
	KindDelegation: {
		"": delegationBegun,
		"ended": func(d contentData) (title, body message.Message) {
			return message.NotificationDelegationEndedTitle(d.For, d.Requester), message.NotificationDelegationEndedBody(d.Actor, d.For, d.Requester)
		},
	},
}

func breakGlassOpened(d contentData) (title, body message.Message) {
	title = message.NotificationBreakGlassTitle(d.ticket, d.Actor, d.subject)
	if d.Until.IsZero() {
		return title, message.NotificationBreakGlassBody(d.Actor)
	}
	return title, message.NotificationBreakGlassBodyUntil(d.Actor, d.Until)
}

func escalated(d contentData) (title, body message.Message) {
	if d.For == "" {
		return message.NotificationEscalatedTitle(d.ticket, d.subject), message.NotificationEscalatedBody(d.Requester, d.step())
	}
	return message.NotificationEscalatedTitleFor(d.ticket, d.For, d.subject), message.NotificationEscalatedBodyFor(d.Requester, d.step(), d.For)
}

func approvalNeeded(d contentData) (title, body message.Message) {
	if d.For == "" {
		return message.NotificationApprovalNeededTitle(d.ticket, d.Requester, d.subject), message.NotificationApprovalNeededBody(d.Requester, d.step())
	}
	return message.NotificationApprovalNeededTitleFor(d.ticket, d.Requester, d.For, d.subject),
		message.NotificationApprovalNeededBodyFor(d.Requester, d.step(), d.For)
}

// breakGlassReview asks the recipient to review access that was opened by break-glass.
func breakGlassReview(d contentData) (title, body message.Message) {
	if d.For == "" {
		return message.NotificationBreakGlassReviewTitle(d.ticket, d.Requester, d.subject), message.NotificationBreakGlassReviewBody(d.Requester)
	}
	return message.NotificationBreakGlassReviewTitleFor(d.ticket, d.Requester, d.For, d.subject),
		message.NotificationBreakGlassReviewBodyFor(d.Requester, d.For)
}

func stillNeeded(d contentData) (title, body message.Message) {
	if d.For == "" {
		return message.NotificationStillNeededTitle(d.ticket, d.subject), message.NotificationStillNeededBody(d.Requester, d.step())
	}
	return message.NotificationStillNeededTitleFor(d.ticket, d.For, d.subject), message.NotificationStillNeededBodyFor(d.Requester, d.step(), d.For)
}

func lastReminder(d contentData) (title, body message.Message) {
	if d.For == "" {
		return message.NotificationLastReminderTitle(d.ticket, d.subject), message.NotificationLastReminderBody(d.Requester, d.step())
	}
	return message.NotificationLastReminderTitleFor(d.ticket, d.For, d.subject),
		message.NotificationLastReminderBodyFor(d.Requester, d.step(), d.For)
}

// breakGlassReviewed reports the outcome of a review, which is the step of the event.
func breakGlassReviewed(d contentData) (title, body message.Message) {
	if d.Step == "rejected" {
		return message.NotificationBreakGlassEndedTitle(d.ticket, d.Actor, d.subject), message.NotificationBreakGlassEndedBody(d.actor())
	}
	return message.NotificationBreakGlassConfirmedTitle(d.ticket, d.Actor, d.subject), message.NotificationBreakGlassConfirmedBody(d.actor())
}

func effective(d contentData) (title, body message.Message) {
	title = message.NotificationEffectiveTitle(d.ticket, d.subject)
	if d.Until.IsZero() {
		return title, message.NotificationEffectiveBody()
	}
	return title, message.NotificationEffectiveBodyUntil(d.Until)
}

func revokeRequested(d contentData) (title, body message.Message) {
	if d.Actor == "" {
		return message.NotificationBeingRevokedTitle(d.ticket, d.subject), message.NotificationBeingRevokedBody()
	}
	return message.NotificationRevokeRequestedTitle(d.ticket, d.Actor, d.subject), message.NotificationRevokeRequestedBody(d.Actor)
}

func shortened(d contentData) (title, body message.Message) {
	title = message.NotificationShortenedTitle(d.ticket, d.Until, d.subject)
	if d.Actor == "" {
		return title, message.NotificationShortenedBodyUnconfirmed(d.Until)
	}
	return title, message.NotificationShortenedBody(d.Actor, d.Until)
}

func decidedByColleague(d contentData) (title, body message.Message) {
	if d.Actor == "" {
		return message.NotificationDecidedByNobodyTitle(d.ticket, d.subject), message.NotificationDecidedByNobodyBody(d.step())
	}
	return message.NotificationDecidedByColleagueTitle(d.ticket, d.Actor, d.subject), message.NotificationDecidedByColleagueBody(d.step(), d.actor())
}

// withdrawn reports the end of a request. Without an actor, the portal ended it because the rollout of the resource was stopped.
func withdrawn(d contentData) (title, body message.Message) {
	title = message.NotificationWithdrawnTitle(d.ticket, d.subject)
	if d.Actor == "" {
		return title, message.NotificationWithdrawnBodyRolloutStopped()
	}
	return title, message.NotificationWithdrawnBody(d.Actor)
}

func delegationBegun(d contentData) (title, body message.Message) {
	title = message.NotificationDelegationBegunTitle(d.Requester, d.For, d.Begin)
	if d.Actor == d.Requester {
		return title, message.NotificationDelegationBegunBody(d.For, d.Requester, d.Begin, d.Until)
	}
	return title, message.NotificationDelegationBegunBodyBy(d.For, d.Requester, d.Begin, d.Until, d.Actor)
}

// rolloutMessages contains the messages about the enforcement of resources. The event submitted belongs to a ticket of the resource's side for access of a
// client that was observed.
var rolloutMessages = messagesByEvent{
	"submitted": func(d contentData) (title, body message.Message) {
		return message.NotificationAccessAdoptedTitle(d.ticket, d.Requester, d.subject), message.NotificationAccessAdoptedBody(d.Requester)
	},
	eventHolderUpdate: func(d contentData) (title, body message.Message) {
		return message.NotificationAccessGivenTitle(d.ticket, d.subject), message.NotificationAccessGivenBody(d.Requester)
	},
	EventAnnounced: func(d contentData) (title, body message.Message) {
		body = message.NotificationAnnouncedBody(d.Actor)
		if d.Until.IsZero() {
			return message.NotificationAnnouncedTitle(d.subject), body
		}
		return message.NotificationAnnouncedTitleFrom(d.subject, d.Until), body
	},
	EventTemporaryAudit: func(d contentData) (title, body message.Message) {
		return message.NotificationTemporaryAuditTitle(d.Actor, d.subject, d.Until), message.NotificationTemporaryAuditBody(d.Actor, d.Until)
	},
	EventTemporaryAuditEnded: func(d contentData) (title, body message.Message) {
		return message.NotificationTemporaryAuditEndedTitle(d.Actor, d.subject), message.NotificationTemporaryAuditEndedBody(d.Actor)
	},
	EventFleetDowngrade: func(d contentData) (title, body message.Message) {
		body = message.NotificationDowngradeBody(d.Actor, d.Until)
		if d.Count == 1 {
			return message.NotificationDowngradeTitleOne(d.Actor, d.Until), body
		}
		return message.NotificationDowngradeTitle(d.Actor, int(d.Count), d.Until), body
	},
	EventFleetDowngradeEnded: func(d contentData) (title, body message.Message) {
		body = message.NotificationDowngradeEndedBody(d.Actor)
		if d.Count == 1 {
			return message.NotificationDowngradeEndedTitleOne(d.Actor), body
		}
		return message.NotificationDowngradeEndedTitle(d.Actor, int(d.Count)), body
	},
	EventRolloutStopped: func(d contentData) (title, body message.Message) {
		n := int(d.Count)
		title = message.NotificationRolloutStoppedTitle(d.subject, n, d.Cluster)
		if d.Until.IsZero() {
			return title, message.NotificationRolloutStoppedBody(n, d.Cluster)
		}
		return title, message.NotificationRolloutStoppedBodyTemporaryAudit(n, d.Cluster, d.Until)
	},
	EventWavesHalted: func(d contentData) (title, body message.Message) {
		return message.NotificationWavesHaltedTitle(d.subject), message.NotificationWavesHaltedBody(d.Message)
	},
	EventClassWavesHalted: func(d contentData) (title, body message.Message) {
		return message.NotificationClassWavesHaltedTitle(d.subject), message.NotificationClassWavesHaltedBody(d.Message)
	},
	EventFlowsUnwatched: func(d contentData) (title, body message.Message) {
		return message.NotificationFlowsUnwatchedTitle(d.subject, d.Cluster), message.NotificationFlowsUnwatchedBody(d.Cluster)
	},
	EventFlowsLost: func(d contentData) (title, body message.Message) {
		return message.NotificationFlowsLostTitle(d.subject, d.Cluster), message.NotificationFlowsLostBody(d.Cluster)
	},
	EventReviewDue: func(d contentData) (title, body message.Message) {
		return message.NotificationProposalReviewDueTitle(d.subject), message.NotificationProposalReviewDueBody(d.Until)
	},
	EventClientNotice: func(d contentData) (title, body message.Message) {
		title = message.NotificationClientNoticeTitle(d.subject)
		if d.Count == 1 {
			return title, message.NotificationClientNoticeBodyOne(d.Actor, d.Begin)
		}
		return title, message.NotificationClientNoticeBody(d.Actor, int(d.Count), d.Begin)
	},
}

// accessReviewMessages are about access reviews, whose names are the comments of the facts. The event "" is one of another version.
var accessReviewMessages = messagesByEvent{
	"": func(d contentData) (title, body message.Message) {
		return message.NotificationAccessReviewTitle(d.subject), message.NotificationAccessReviewBody()
	},
	EventReviewOpened: func(d contentData) (title, body message.Message) {
		body = message.NotificationAccessReviewOpenedBody(d.Until)
		if d.Count == 1 {
			return message.NotificationAccessReviewOpenedTitleOne(d.Comment, d.Until), body
		}
		return message.NotificationAccessReviewOpenedTitle(d.Comment, int(d.Count), d.Until), body
	},
	EventReviewReminded: func(d contentData) (title, body message.Message) {
		body = message.NotificationAccessReviewRemindedBody(d.Until)
		if d.Count == 1 {
			return message.NotificationAccessReviewRemindedTitleOne(d.Comment, d.Until), body
		}
		return message.NotificationAccessReviewRemindedTitle(d.Comment, int(d.Count), d.Until), body
	},
	EventReviewReopened: func(d contentData) (title, body message.Message) {
		return message.NotificationAccessReviewReopenedTitle(d.Comment, d.subject), message.NotificationAccessReviewReopenedBody(d.Until)
	},
	EventReviewAbandoned: func(d contentData) (title, body message.Message) {
		return message.NotificationAccessReviewAbandonedTitle(d.Comment), message.NotificationAccessReviewAbandonedBody()
	},
	EventReviewClosed: func(d contentData) (title, body message.Message) {
		body = message.NotificationAccessReviewClosedBody()
		if d.Count == 1 {
			return message.NotificationAccessReviewClosedTitleOne(d.Comment), body
		}
		return message.NotificationAccessReviewClosedTitle(d.Comment, int(d.Count)), body
	},
}
