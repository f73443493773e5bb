//! Examples of `lapwing reproduce`, and its JSON.

pub(super) const EXAMPLES: &str = "\
Examples:
  lapwing reproduce                       all published numbers that are not held back
  lapwing reproduce table3                one table or figure
  lapwing reproduce --predict-held-back   also predict the numbers that are held back
  lapwing reproduce --html page.html --csv numbers.csv

Tables and figures, by subject: prefill (fig13), lengths (fig14), preparation, decode (fig16),
fast-sync (fig15, fig17), interference (fig18), power (fig19), ablation, tasks, table3. Figure
numbers are those of HeteroLLM (arXiv 2501.14794).

Roles: a pin is a number that parameters were fitted to. No parameter was fitted to a check, which
must be met within 10 %; the form of the models was chosen with the checks in view, and two checks
are derived from other published numbers, so they are no blind test. A stated number is published
loosely or contradicts others, and is not judged. A number held back is published, but not part of
this program, so that predictions can be compared blind.

The interval of a number has 95 % of what the errors of the pins leave open. It has no error of the
form of the models, so a check outside its interval (marked) is missed by the form.

Exit code 1 if a check is missed or an order does not hold.

With --json:
  {\"soc\":\"…\",\"rows\":[{\"id\":\"…\",\"group\":\"…\",\"what\":\"…\",\"of\":\"…\",\"paper\":F,\"model\":F,
    \"unit\":\"…\",\"error\":F,\"interval\":[F,F],\"role\":\"pin|check|stated\",\"source\":\"…\"}],
   \"held_back\":[{\"id\":\"…\",\"group\":\"…\",\"what\":\"…\",\"of\":\"…\",\"model\":F|null,
    \"interval\":[F,F]|null,\"unit\":\"…\",\"source\":\"…\"}],
   \"orders\":[{\"what\":\"…\",\"less\":F,\"more\":F,\"ok\":true|false}],
   \"decisions\":[{\"product\":\"…\",\"tokens\":\"…\",\"paper\":\"…\",\"model\":\"…\",\"same\":true|false,
    \"lengths\":[N,N],\"longer\":F|null,\"reason\":\"…\"}],
   \"crossings\":[{\"strategy\":\"…\",\"phase\":\"prefill|decode\",\"cuts\":F,\"to_npu\":F,\"to_gpu\":F,
    \"launches\":F,\"restarts\":F}],\"notes\":[\"…\"],\"ok\":true|false}";
