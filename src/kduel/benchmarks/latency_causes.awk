# From the whole trace the events of one CPU, from where the late task set its timer to where it noticed to be late.
{ line[NR] = $0 }
/hit latency threshold/ { end = NR }
END {
  if (!end) exit
  match(line[end], /-[0-9]+ +\[[0-9]+\]/); who = substr(line[end], RSTART, RLENGTH)
  cpu = substr(who, index(who, "["))
  for (start = end; start > 1; start--) if (index(line[start], who) && line[start] ~ /hrtimer_start.*hrtimer_wakeup/) break
  print "path"
  for (; start <= end; start++) if (index(line[start], cpu)) print line[start]
}
