#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Turns a tar stream (stdin) into a git fast-import stream (stdout) that holds one commit.
#
# Streaming keeps the import of a kernel tree to a single pack file: nothing is unpacked and
# no loose object is written. Only what a kernel source archive contains is understood:
# files, folders, symbolic links, and GNU or pax long names. Anything else is an error.
#
# Usage: tar-to-fast-import.pl REF WHO DATE SUBJECT-FILE < TAR
use strict;
use warnings;

use constant BLOCK => 512;

my ($ref, $who, $date, $message_file) = @ARGV;
die "usage: tar-to-fast-import.pl REF WHO DATE MESSAGE-FILE < TAR\n"
	unless defined $message_file;

binmode STDIN;
binmode STDOUT;

sub read_exactly {
	my ($size) = @_;
	my $data = '';

	while (length($data) < $size) {
		my $got = read(STDIN, $data, $size - length($data), length($data));
		die "tar stream: $!\n" unless defined $got;
		die "tar stream ends early\n" if $got == 0;
	}
	return $data;
}

sub read_body {
	my ($size) = @_;
	my $data = read_exactly($size);

	read_exactly((BLOCK - $size % BLOCK) % BLOCK);
	return $data;
}

sub text_field {
	my ($field) = @_;

	$field =~ s/\0.*//s;
	return $field;
}

sub number_field {
	my ($field) = @_;

	die "tar stream: numbers in base 256 are not understood\n" if ord($field) & 0x80;
	$field =~ s/[\0 ]//g;
	return $field eq '' ? 0 : oct($field);
}

sub pax_records {
	my ($data) = @_;
	my %records;

	while ($data =~ s/^(\d+) //) {
		my $rest = $1 - length($1) - 1;
		my ($key, $value) = substr($data, 0, $rest, '') =~ /^([^=]+)=(.*)\n$/s
			or die "tar stream: bad pax header\n";
		$records{$key} = $value;
	}
	return %records;
}

sub quoted_path {
	my ($path) = @_;

	$path =~ s/([\\"])/\\$1/g;
	$path =~ s/\n/\\n/g;
	return qq{"$path"};
}

sub print_data {
	my ($data) = @_;

	print 'data ', length($data), "\n", $data, "\n";
}

open(my $message_handle, '<', $message_file) or die "$message_file: $!\n";
my $message = do { local $/; <$message_handle> };
close($message_handle);

print "commit $ref\nauthor $who $date\ncommitter $who $date\n";
print_data($message);

my ($long_name, $long_target, $entries) = (undef, undef, 0);
while (1) {
	my $header = read_exactly(BLOCK);
	last if $header !~ /[^\0]/;

	my ($name, $mode, $size, $sum, $type, $target, $magic, $prefix) =
		unpack('a100 a8 x16 a12 x12 a8 a1 a100 a6 x82 a155', $header);
	$size = number_field($size);
	substr($header, 148, 8) = ' ' x 8;
	die "tar stream: bad header checksum\n"
		unless unpack('%32C*', $header) == number_field($sum);

	if ($type eq 'L') {
		$long_name = text_field(read_body($size));
		next;
	} elsif ($type eq 'K') {
		$long_target = text_field(read_body($size));
		next;
	} elsif ($type eq 'x') {
		my %records = pax_records(read_body($size));
		$long_name = $records{path} if defined $records{path};
		$long_target = $records{linkpath} if defined $records{linkpath};
		next;
	} elsif ($type eq 'g') {
		read_body($size);
		next;
	}

	$name = text_field($name);
	$name = text_field($prefix) . "/$name"
		if $magic eq "ustar\0" && text_field($prefix) ne '';
	$name = $long_name if defined $long_name;
	$target = defined $long_target ? $long_target : text_field($target);
	($long_name, $long_target) = (undef, undef);

	# The archive has everything below one top folder.
	$name =~ s{^(?:\./)?[^/]+/}{};

	if ($type eq '5') {
		next;
	} elsif ($type eq '2') {
		print 'M 120000 inline ', quoted_path($name), "\n";
		print_data($target);
	} elsif ($type eq '0' || $type eq "\0") {
		my $bits = number_field($mode) & 0111 ? '100755' : '100644';

		print "M $bits inline ", quoted_path($name), "\n";
		print_data(read_body($size));
	} else {
		die "tar stream: $name has the unexpected type '$type'\n";
	}
	$entries++;
}
die "tar stream: no files\n" unless $entries;
print "done\n";

# The rest is padding; xz fails loudly when its reader goes away, so it is read to the end.
1 while read(STDIN, my $padding, 65536);
close(STDOUT) or die "cannot write the stream: $!\n";
