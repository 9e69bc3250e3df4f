import { useEffect, useMemo, useState } from "react";
import { asApiError, loginTooOld } from "../api/client";
import { useMe } from "../api/queries";
import { loadComment, saveComment } from "./comment-draft";

/**
 * useKeptComment returns the comment that is typed for a decision about a ticket, and the function that changes it. While the error of the decision
 * says that it needs a new login, the comment is kept for after the login.
 */
export function useKeptComment(ticket: string, error: unknown) {
  const me = useMe().data?.person.id;
  const kept = useMemo(() => (me === undefined ? "" : loadComment(me, ticket)), [me, ticket]);
  const [typed, setComment] = useState<string>();
  const comment = typed ?? kept;
  const needsLogin = Boolean(error) && asApiError(error).code === loginTooOld;
  useEffect(() => {
    if (needsLogin && me !== undefined) saveComment({ person: me, ticket, comment });
  }, [needsLogin, me, ticket, comment]);
  return { comment, setComment };
}
