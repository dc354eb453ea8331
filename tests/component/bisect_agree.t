#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
#
# `kbisect next` against git on random merge histories: every possible culprit is searched
# for with both, and ours may need no more tests than git's, neither in the worst case nor
# in total. Seeds are fixed; $BISECT_AGREE_DAGS changes how many histories there are.
use strict;
use warnings;
use File::Temp qw(tempdir);
use IO::Handle;

my $kbisect = $ENV{KBISECT} // 'build/kbisect';
my $dag_count = $ENV{BISECT_AGREE_DAGS} // 220;
my $tests = 0;
my $failed = 0;
STDOUT->autoflush(1);

delete @ENV{grep { /^GIT_/ } keys %ENV};
@ENV{qw(GIT_CONFIG_NOSYSTEM GIT_CONFIG_GLOBAL LC_ALL)} = (1, '/dev/null', 'C');
$ENV{"GIT_$_"} = 'tester' for qw(AUTHOR_NAME AUTHOR_EMAIL COMMITTER_NAME COMMITTER_EMAIL);

sub ok {
	my ($passed, $name) = @_;
	$tests++;
	$failed++ if !$passed;
	print(($passed ? 'ok' : 'not ok'), " $tests - $name\n");
	return $passed;
}

sub done {
	print "1..$tests\n";
	exit($failed || !$tests ? 1 : 0);
}

if (!-x $kbisect) {
	print "1..0 # SKIP no program $kbisect; build it or set KBISECT\n";
	exit 1;
}

# A linear congruential generator: Perl's own may differ between versions.
my $rng_state;
sub rng {
	my ($below) = @_;
	$rng_state = ($rng_state * 1103515245 + 12345) % 2147483648;
	return int($rng_state / 2147483648 * $below);
}

my @files = qw(a/x a/y a/deep/z b/x b/y c);

# One random history: {parents => [[..]..], trees => [{file => text}..], dates => [..]}.
sub random_dag {
	my ($seed) = @_;
	$rng_state = $seed * 7919 + 1;
	rng(2) for 1 .. 10;
	my $count = $seed % 10 == 0 ? 30 + rng(10) : 6 + rng(16);
	my $width = 1 + rng(6);
	my $merge_percent = (10, 25, 40, 60)[rng(4)];
	my $skew = (0, 0, 0, 150)[rng(4)];
	my $tick = (60, 60, 60, 0)[rng(4)];
	my (@parents, @trees, @dates);
	my @heads = (0);

	for my $n (0 .. $count - 1) {
		my @from;
		my $i = rng(scalar @heads);
		if ($n == 0) {
			@from = ();
		} elsif (@heads > 1 && (@heads >= $count - $n || rng(100) < $merge_percent)) {
			my $j = ($i + 1 + rng(@heads - 1)) % @heads;
			@from = ($heads[$i], $heads[$j]);
			$heads[$i] = $n;
			splice(@heads, $j, 1);
		} elsif (@heads < $width && rng(3) == 0) {
			@from = ($heads[$i]);
			push @heads, $n;
		} elsif ($n > 3 && rng(12) == 0) {
			# An old commit merged once more: criss-cross.
			my $old = rng($n - 1);
			@from = $old == $heads[$i] ? ($old) : ($heads[$i], $old);
			$heads[$i] = $n;
		} else {
			@from = ($heads[$i]);
			$heads[$i] = $n;
		}
		push @parents, \@from;
		push @trees, random_tree($n, map { $trees[$_] } @from);
		push @dates, 1_600_000_000 + $n * $tick + ($skew ? rng(2 * $skew) - $skew : 0);
	}
	return {parents => \@parents, trees => \@trees, dates => \@dates, count => $count,
		in_order => $skew == 0 && $tick > 0};
}

# A merge takes each file from some parent, or all from one; others change a file or none.
sub random_tree {
	my ($n, @parents) = @_;
	my %tree = @parents ? %{$parents[0]} : map { $_ => "0\n" } @files;
	my $kind = rng(4);

	if (@parents > 1) {
		my $whole = $parents[rng(scalar @parents)];
		for my $file (@files) {
			my $from = $kind == 0 ? $whole : $parents[rng(scalar @parents)];
			delete $tree{$file};
			$tree{$file} = $from->{$file} if exists $from->{$file};
		}
		return \%tree if $kind != 3;
	}
	return \%tree if @parents == 1 && $kind == 0 && rng(2);
	for (0 .. rng(2)) {
		my $file = $files[rng(scalar @files)];
		if (@parents && rng(10) == 0) {
			delete $tree{$file};
		} else {
			$tree{$file} = "$n $file\n";
		}
	}
	$tree{c} = "kept\n" if !%tree;
	return \%tree;
}

sub import_dags {
	my ($dir, @dags) = @_;
	my $mark = 0;

	system('git', 'init', '-q', '--bare', $dir) == 0 or die 'git init failed';
	open(my $in, '|-', 'git', "--git-dir=$dir", 'fast-import', '--quiet',
	     "--export-marks=$dir/marks") or die;
	for my $d (0 .. $#dags) {
		my $dag = $dags[$d];
		$dag->{first_mark} = $mark + 1;
		for my $n (0 .. $dag->{count} - 1) {
			my $message = "commit $n of history $d\n";
			$mark++;
			print $in "commit refs/heads/d$d\nmark :$mark\n",
				"committer t <t\@example.org> $dag->{dates}[$n] +0000\n",
				'data ', length($message), "\n$message\n";
			my @from = map { ':' . ($dag->{first_mark} + $_) } @{$dag->{parents}[$n]};
			# Without it a history would be put on top of itself.
			print $in "from $from[0]\n" if @from;
			print $in "merge $_\n" for @from[1 .. $#from];
			print $in "deleteall\n";
			for my $file (sort keys %{$dag->{trees}[$n]}) {
				my $text = $dag->{trees}[$n]{$file};
				print $in "M 100644 inline $file\ndata ", length($text), "\n$text\n";
			}
		}
	}
	close($in) or die 'fast-import failed';
	my @oids;
	open(my $marks, '<', "$dir/marks") or die;
	while (<$marks>) {
		$oids[$1] = $2 if /^:(\d+) ([0-9a-f]{40})$/;
	}
	close($marks);
	for my $dag (@dags) {
		my $first = $dag->{first_mark};
		$dag->{oids} = [@oids[$first .. $first + $dag->{count} - 1]];
		@{$dag->{number}}{@{$dag->{oids}}} = 0 .. $dag->{count} - 1;
		ancestors($dag);
	}
}

# $dag->{below}[n]{m}: m is an ancestor of n or n itself.
sub ancestors {
	my ($dag) = @_;
	for my $n (0 .. $dag->{count} - 1) {
		my %below = ($n => 1);
		@below{keys %{$dag->{below}[$_]}} = () for @{$dag->{parents}[$n]};
		$dag->{below}[$n] = \%below;
	}
}

sub output_of {
	my ($ok_codes, @command) = @_;
	open(my $out, '-|', @command) or die "can't run $command[0]";
	my @lines = <$out>;
	close($out);
	my $code = $? >> 8;
	die "@command: exit $code\n" if $? & 127 || !grep { $_ == $code } @$ok_codes;
	chomp @lines;
	return @lines;
}

my ($dir, $work);

# All states of a case are asked about once.
sub remembered {
	my ($case, $ask, $bad, @goods) = @_;
	my $key = join(' ', $ask, $bad, sort @goods);
	return $case->{said}{$key} //= $ask->($case, $bad, @goods);
}

# Both return {commit, all, steps} or {found} / {stuck => 1}.
sub ask_ours {
	my ($case, $bad, @goods) = @_;
	my $dag = $case->{dag};
	my @lines = output_of([0, 3], $kbisect, 'next', '--repo', $dir,
		(map { ('--good', $dag->{oids}[$_]) } @goods), '--bad', $dag->{oids}[$bad],
		(map { ('--skip', $dag->{oids}[$_]) } @{$case->{skips}}),
		($case->{first_parent} ? '--first-parent' : ()),
		# As git, which looks for untested common ancestors at the start only.
		($bad == $case->{bad} ? () : '--ancestors-ok'),
		@{$case->{paths}} ? ('--', @{$case->{paths}}) : ());
	my %said = map { /^(\S+) (.*)$/ ? ($1, $2) : () } @lines;
	return {stuck => 1, all => $said{candidates}} if exists $said{candidate};
	my $commit = $dag->{number}{$said{commit}};
	return {found => $commit, all => 1} if $said{candidates} == 1;
	return {commit => $commit, all => $said{candidates}, steps => $said{steps}};
}

sub ask_git_rev_list {
	my ($case, $bad, @goods) = @_;
	my $dag = $case->{dag};
	my @lines = output_of([0], 'git', "--git-dir=$dir", 'rev-list', '--bisect-vars',
		($case->{first_parent} ? '--first-parent' : ()), $dag->{oids}[$bad],
		(map { "^$dag->{oids}[$_]" } @goods),
		@{$case->{paths}} ? ('--', @{$case->{paths}}) : ());
	my %said = map { /^bisect_(\w+)='?([^']*)'?$/ ? ($1, $2) : () } @lines;
	my $commit = $dag->{number}{$said{rev}};
	return {found => $commit, all => $said{all}} if $commit == $bad;
	return {commit => $commit, all => $said{all}, steps => $said{steps},
		reach => $said{bad} + 1};
}

# What a test is worth: the fewest candidates that it leaves or rules out.
sub value_of {
	my ($case, $test, $bad, @goods) = @_;
	my $below = $case->{dag}{below};
	my @candidates = grep { my $n = $_; !grep { exists $below->[$_]{$n} } @goods }
		keys %{$below->[$bad]};
	my $reach = grep { exists $below->[$test]{$_} } @candidates;
	return $reach < @candidates - $reach ? $reach : @candidates - $reach;
}

sub write_file {
	my ($path, @lines) = @_;
	open(my $file, '>', $path) or die "$path: $!";
	print $file map { "$_\n" } @lines;
	close($file) or die;
}

# The real thing, in a repository of its own that is put into the middle of a session.
sub ask_git_bisect {
	my ($case, $bad, @goods) = @_;
	my $dag = $case->{dag};
	unlink glob("$work/refs/bisect/*"), glob("$work/BISECT_*");
	mkdir "$work/refs/bisect";
	write_file("$work/refs/bisect/bad", $dag->{oids}[$bad]);
	write_file("$work/refs/bisect/good-$dag->{oids}[$_]", $dag->{oids}[$_]) for @goods;
	write_file("$work/refs/bisect/skip-$dag->{oids}[$_]", $dag->{oids}[$_])
		for @{$case->{skips}};
	write_file("$work/BISECT_START", 'main');
	write_file("$work/BISECT_HEAD", $dag->{oids}[$bad]);
	write_file("$work/BISECT_TERMS", 'bad', 'good');
	write_file("$work/BISECT_NAMES", join(' ',
		map { "'$_'" } @{$case->{paths}} ? ('--', @{$case->{paths}}) : ()));
	write_file("$work/BISECT_FIRST_PARENT") if $case->{first_parent};
	write_file("$work/BISECT_LOG", 'git bisect start');
	my @lines = output_of([0, 2, 10], 'sh', '-c', 'exec git "$@" 2>&1', 'git',
		"--git-dir=$work", 'bisect', 'next');
	for (@lines) {
		return {found => $dag->{number}{$1}} if /^([0-9a-f]{40}) is the first bad/;
		return {stuck => 1} if /only 'skip'ped commits left/;
	}
	open(my $file, '<', "$work/BISECT_HEAD") or die;
	my $head = <$file>;
	chomp $head;
	return {commit => $dag->{number}{$head}};
}

# Searches every culprit of the list from one state; fills $steps->{culprit}.
sub search {
	my ($case, $ask, $culprits, $depth, $steps, $bad, @goods) = @_;
	my $dag = $case->{dag};
	my $said = remembered($case, $ask, $bad, @goods);

	die "no end\n" if $depth > 60;
	if (!defined $said->{commit}) {
		for my $culprit (@$culprits) {
			$steps->{$culprit} = $depth;
			$case->{lost}++ if $ask == \&ask_ours && defined $said->{found} &&
				$said->{found} != $culprit;
		}
		return;
	}
	my $test = $said->{commit};
	my @below = grep { exists $dag->{below}[$test]{$_} } @$culprits;
	my @others = grep { !exists $dag->{below}[$test]{$_} } @$culprits;
	search($case, $ask, \@below, $depth + 1, $steps, $test, @goods) if @below;
	search($case, $ask, \@others, $depth + 1, $steps, $bad, @goods, $test) if @others;
}

# As search() with rev-list, where each state's answers can be compared one by one. With
# equal or wrong dates git's list is in no useful order, so that it chooses differently among
# tests of the same value; then the value has to be the same.
my %states;
sub compare_states {
	my ($case, $name, $culprits, $bad, @goods) = @_;
	my $dag = $case->{dag};
	my $ours = remembered($case, \&ask_ours, $bad, @goods);
	my $git = remembered($case, \&ask_git_rev_list, $bad, @goods);
	my $both = defined $ours->{commit} && defined $git->{commit};

	$states{all}++;
	$states{counts}++ if $ours->{all} == $git->{all};
	$states{steps}++ if $both ? $ours->{steps} == $git->{steps} : $git->{all} == 1;
	my $value_is_known = $both && $case->{kind} eq 'plain';
	if ($dag->{in_order}) {
		$states{ordered}++;
		$states{choice}++ if $both ? $ours->{commit} == $git->{commit} : $git->{all} == 1;
	} elsif ($value_is_known) {
		my $rest = $git->{all} - $git->{reach};
		my $value = $git->{reach} < $rest ? $git->{reach} : $rest;
		$states{valued}++;
		$states{value}++ if value_of($case, $ours->{commit}, $bad, @goods) == $value;
	}
	print "# $name bad $bad good @goods: ours ", join(' ', %$ours), ', git ',
		join(' ', %$git), "\n"
		if $ours->{all} != $git->{all} ||
			($both && $dag->{in_order} && $ours->{commit} != $git->{commit});
	return if !defined $ours->{commit};
	my $test = $ours->{commit};
	my @below = grep { exists $dag->{below}[$test]{$_} } @$culprits;
	my @others = grep { !exists $dag->{below}[$test]{$_} } @$culprits;
	compare_states($case, $name, \@below, $test, @goods) if @below;
	compare_states($case, $name, \@others, $bad, @goods, $test) if @others;
}

# The commits that git lists as candidates at the start: each is a culprit once.
sub candidates_of {
	my ($case) = @_;
	my $dag = $case->{dag};
	my @lines = output_of([0], 'git', "--git-dir=$dir", 'rev-list',
		($case->{first_parent} ? '--first-parent' : ()), $dag->{oids}[$case->{bad}],
		(map { "^$dag->{oids}[$_]" } @{$case->{goods}}),
		@{$case->{paths}} ? ('--', @{$case->{paths}}) : ());
	return map { $dag->{number}{$_} } @lines;
}

# Which kind of limit a history is searched with; undef when nothing would be left.
sub make_case {
	my ($d, $dag) = @_;
	my $kind = $d % 8;
	my $bad = $dag->{count} - 1;
	my %case = (dag => $dag, bad => $bad, skips => [], paths => [], lost => 0,
		kind => (qw(plain first-parent paths skips plain paths paths+skips
			paths+first-parent))[$kind]);

	$rng_state = $d * 104729 + 5;
	rng(2) for 1 .. 10;
	$case{first_parent} = $case{kind} =~ /first-parent/;
	if ($case{kind} =~ /paths/) {
		$case{paths} = [(['a'], ['b/x', 'c'], ['a/deep/'], ['*x'])[rng(4)]->@*];
	}
	$case{goods} = [grep { exists $dag->{below}[$bad]{$_} } (0, rng(int($bad / 3) + 1))];
	my @culprits = candidates_of(\%case);
	if ($case{kind} =~ /skips/) {
		my $percent = 10 + rng(50);
		$case{skips} = [grep { $_ != $bad && rng(100) < $percent } @culprits];
	}
	return @culprits ? (\%case, @culprits) : ();
}

sub compare_searches {
	my ($name, $ask_git, $case, @culprits) = @_;
	my (%ours, %git, %sum, %worst);

	search($case, \&ask_ours, \@culprits, 0, \%ours, $case->{bad}, @{$case->{goods}});
	search($case, $ask_git, \@culprits, 0, \%git, $case->{bad}, @{$case->{goods}});
	for my $who (['ours', \%ours], ['git', \%git]) {
		for my $steps (values %{$who->[1]}) {
			$sum{$who->[0]} += $steps;
			$worst{$who->[0]} = $steps if $steps > ($worst{$who->[0]} // 0);
		}
		$_ //= 0 for $sum{$who->[0]}, $worst{$who->[0]};
	}
	print "# $name $case->{kind}: worst $worst{ours} against $worst{git}, total $sum{ours} ",
		"against $sum{git}\n"
		if $worst{ours} > $worst{git};
	return (\%sum, \%worst);
}

# Everything is added up in one flat table, so that it can come from several processes.
my %sum;

sub compare_history {
	my ($d, $dag) = @_;
	my ($case, @culprits) = make_case($d, $dag);
	return if !$case;
	my $kind = $case->{kind};
	my $has_skips = @{$case->{skips}} > 0;
	if (!$has_skips) {
		compare_states($case, "history $d $kind", \@culprits, $case->{bad},
			@{$case->{goods}});
	}
	my ($s, $w) = compare_searches("history $d",
		$has_skips ? \&ask_git_bisect : \&ask_git_rev_list, $case, @culprits);
	$sum{"$kind histories"}++;
	$sum{"$kind total $_"} += $s->{$_} for qw(ours git);
	$sum{"$kind worst $_"} += $w->{$_} for qw(ours git);
	$sum{"$kind worse"} += $w->{ours} > $w->{git};
	$sum{"$kind lost"} += $case->{lost};
}

# A whole session of `git bisect run`, untouched by us, against our search of that culprit.
sub compare_session {
	my ($d, $dag) = @_;
	my ($case, @culprits) = make_case($d, $dag);
	return if !$case || @{$case->{skips}} || !$dag->{in_order};
	my $culprit = $culprits[@culprits / 2];
	my %ours;
	search($case, \&ask_ours, [$culprit], 0, \%ours, $case->{bad}, @{$case->{goods}});

	unlink glob("$work/refs/bisect/*"), glob("$work/BISECT_*"), "$work/tests";
	my @oids = map { $dag->{oids}[$_] } $case->{bad}, @{$case->{goods}};
	write_file("$work/HEAD", $oids[0]); # git wants to know where it came from
	output_of([0], 'git', "--git-dir=$work", 'bisect', 'start', '--no-checkout',
		($case->{first_parent} ? '--first-parent' : ()), @oids,
		@{$case->{paths}} ? ('--', @{$case->{paths}}) : ());
	my $test = "echo >>'$work/tests'; ! git --git-dir='$work' merge-base --is-ancestor " .
		"$dag->{oids}[$culprit] BISECT_HEAD";
	my @lines = output_of([0], 'git', "--git-dir=$work", 'bisect', 'run', 'sh', '-c', $test);
	my $git = -s "$work/tests" // 0;
	$sum{'session all'}++;
	$sum{'session ours'} += $ours{$culprit};
	$sum{'session git'} += $git;
	$sum{'session found'} += grep { /^$dag->{oids}[$culprit] is the first bad/ } @lines;
}

sub work_on {
	my ($job, $jobs, $out, @dags) = @_;
	for my $d (grep { $_ % $jobs == $job } 0 .. $#dags) {
		compare_history($d, $dags[$d]);
		compare_session($d, $dags[$d]) if $d % 8 < 2 && $d < 64;
	}
	$sum{"states $_"} = $states{$_} for keys %states;
	print $out "$_\t$sum{$_}\n" for keys %sum;
}

sub compare_all {
	my ($jobs, @dags) = @_;
	my (@pipes, @children, %all);
	for my $job (0 .. $jobs - 1) {
		pipe(my $from, my $to) or die;
		my $pid = fork() // die;
		if ($pid == 0) {
			$work = "$work.$job";
			system('cp', '-r', $dir, $work) == 0 or die;
			work_on($job, $jobs, $to, @dags);
			close($to);
			# Not exit(): the folder is the parent's to remove.
			require POSIX;
			STDOUT->flush();
			POSIX::_exit(0);
		}
		close($to);
		push @pipes, $from;
		push @children, $pid;
	}
	for my $from (@pipes) {
		while (<$from>) {
			chomp;
			my ($key, $value) = split(/\t/);
			$all{$key} += $value;
		}
	}
	for my $pid (@children) {
		waitpid($pid, 0);
		die "a worker failed\n" if $?;
	}
	return %all;
}

sub judge {
	my (%all) = @_;
	my %total;
	for my $kind (map { /^(.*) histories$/ ? $1 : () } sort keys %all) {
		my ($ours, $git) = ($all{"$kind total ours"}, $all{"$kind total git"});
		my ($our_worst, $git_worst) = ($all{"$kind worst ours"}, $all{"$kind worst git"});
		print "# $kind: $all{\"$kind histories\"} histories; tests over all culprits $ours ",
			"against git's $git; worst cases added up $our_worst against $git_worst\n";
		$total{ours} += $ours;
		$total{git} += $git;
		# git goes away from skipped commits by a fixed random number, which may be lucky.
		if ($kind =~ /skips/) {
			ok($our_worst <= $git_worst, "$kind: worst cases no higher than git's");
		} else {
			ok($all{"$kind worse"} == 0, "$kind: worst case of no history above git's");
		}
		ok($ours <= $git, "$kind: no more tests than git in total");
		ok($all{"$kind lost"} == 0, "$kind: the culprit is found") if $kind !~ /paths/;
	}
	my ($states, $ordered, $valued) = @all{'states all', 'states ordered', 'states valued'};
	print "# over all: $total{ours} tests against git's $total{git}\n";
	my $histories = 0;
	$histories += $all{$_} for grep { / histories$/ } keys %all;
	ok($histories >= $dag_count * 0.85, "$histories histories had something to search");
	ok($states > 2 * $dag_count, "$states states were compared with rev-list");
	ok($all{'states counts'} == $states, 'the same number of candidates in all of them');
	ok($all{'states steps'} == $states, 'the same estimate of steps in all of them');
	ok($all{'states choice'} == $ordered,
		"where dates are in order, the same choice in $all{'states choice'} of $ordered");
	ok($valued && $all{'states value'} == $valued,
		"where they are not, one of the same value in $all{'states value'} of $valued");
	ok($all{'session all'} && $all{'session ours'} == $all{'session git'},
		"$all{'session all'} sessions of git bisect run: $all{'session git'} tests, " .
		"ours $all{'session ours'}");
	ok($all{'session found'} == $all{'session all'}, 'where git finds the culprit too');
}

my $tmp = tempdir('kbisect-agree-XXXXXX', TMPDIR => 1, CLEANUP => 1);
($dir, $work) = ("$tmp/histories.git", "$tmp/session.git");
my @dags = map { random_dag($_) } 0 .. $dag_count - 1;
import_dags($dir, @dags);
judge(compare_all(2, @dags));
done();
