import { useEffect, useMemo, useState } from "react";
import { asApiError, loginTooOld } from "../api/client";
import { useMe } from "../api/queries";
import { loadComment, saveComment } from "./comment-draft";

/** useTypedComment returns the comment that is typed about a ticket, and the function that changes it. It begins with the one that was kept before a login. */
export function useTypedComment(ticket: string) {
  const me = useMe().data?.person.id;
  const kept = useMemo(() => (me === undefined ? "" : loadComment(me, ticket)), [me, ticket]);
  const [typed, setComment] = useState<string>();
  return { comment: typed ?? kept, setComment };
}

/** useKeepForLogin keeps the comment for after the login while the error of the decision says that it needs a new login. */
export function useKeepForLogin(ticket: string, comment: string, error: unknown) {
  const me = useMe().data?.person.id;
  const needsLogin = Boolean(error) && asApiError(error).code === loginTooOld;
  useEffect(() => {
    if (needsLogin && me !== undefined) saveComment({ person: me, ticket, comment });
  }, [needsLogin, me, ticket, comment]);
}
