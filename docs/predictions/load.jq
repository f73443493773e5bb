# The reports of `lapwing load --json` without values of single windows, with five significant digits.
def short: if type == "number" and . != 0 then
    (pow(10; 4 - (fabs | log10 | floor))) as $scale | (. * $scale | round) / $scale
  else . end;
{workload, reports: [.reports[]
  | del(.window_s, .difference_in_window, .policy_numbers, .latencies.tpot_ms, .latencies.itl_ms)
  | .clients |= map(.ttft = {mean: .latencies.ttft_ms.mean} | del(.latencies, .service_in_window))
  | walk(short)]}
