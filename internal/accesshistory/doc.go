// Package accesshistory answers from records who could reach a resource at an instant in the past, in which periods an application could
// reach it, and which modes it had. The records are the tickets, the ledger's lines about changes outside of the portal and about temporary
// audits, and the present objects of the host cluster. Records reconstructs the objects of an instant, and package policy decides about
// them. What the records do not cover is reported as a Gap and never as "nobody". The package must not import HTTP, SQL or Kubernetes
// clients.
package accesshistory
