BEGIN TRANSACTION;
CREATE TABLE about (
	version INTEGER NOT NULL
);
INSERT INTO "about" VALUES(1);
CREATE TABLE entries (
	source TEXT NOT NULL, 
	question INTEGER NOT NULL, 
	task INTEGER NOT NULL, 
	worker INTEGER, 
	label INTEGER NOT NULL, 
	time FLOAT, 
	number BIGINT NOT NULL, 
	PRIMARY KEY (source, question)
);
INSERT INTO "entries" VALUES('of:["votes", "t1", "ann"]',0,0,0,0,NULL,1);
INSERT INTO "entries" VALUES('of:["votes", "t2", "ann"]',0,1,0,0,NULL,3);
INSERT INTO "entries" VALUES('of:["votes", "t2", "bob"]',0,1,1,0,1700000003.5,4);
INSERT INTO "entries" VALUES('of:["votes", "t3", "cy"]',0,2,2,1,NULL,5);
INSERT INTO "entries" VALUES('of:["votes", "t1", "bob"]',0,0,1,0,NULL,6);
INSERT INTO "entries" VALUES('id:v-2',1,1,0,1,NULL,8);
INSERT INTO "entries" VALUES('of:["votes", "t4", null]',0,3,NULL,0,NULL,9);
INSERT INTO "entries" VALUES('id:v-1',0,2,2,1,NULL,10);
INSERT INTO "entries" VALUES('label-studio:1',2,0,0,0,1.79485274289866709711e+09,11);
INSERT INTO "entries" VALUES('label-studio:1',3,0,0,0,1.79485274289866709711e+09,12);
INSERT INTO "entries" VALUES('label-studio:1',4,0,0,0,1.79485274289866709711e+09,13);
INSERT INTO "entries" VALUES('label-studio:2',2,0,1,1,1.79485274326868391031e+09,14);
INSERT INTO "entries" VALUES('label-studio:2',3,0,1,1,1.79485274326868391031e+09,15);
INSERT INTO "entries" VALUES('label-studio:2',4,0,1,1,1.79485274326868391031e+09,16);
INSERT INTO "entries" VALUES('label-studio:4',2,1,NULL,1,1.79485274466837811473e+09,17);
CREATE TABLE names (
	question INTEGER NOT NULL, 
	kind SMALLINT NOT NULL, 
	code INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	PRIMARY KEY (question, kind, code)
);
INSERT INTO "names" VALUES(0,0,0,'t1');
INSERT INTO "names" VALUES(0,1,0,'ann');
INSERT INTO "names" VALUES(0,2,0,'good');
INSERT INTO "names" VALUES(0,1,1,'bob');
INSERT INTO "names" VALUES(0,2,1,'bad');
INSERT INTO "names" VALUES(0,0,1,'t2');
INSERT INTO "names" VALUES(0,0,2,'t3');
INSERT INTO "names" VALUES(0,1,2,'cy');
INSERT INTO "names" VALUES(1,0,0,'t1');
INSERT INTO "names" VALUES(1,0,1,'t2');
INSERT INTO "names" VALUES(1,1,0,'ann');
INSERT INTO "names" VALUES(1,2,0,'x');
INSERT INTO "names" VALUES(1,2,1,'ä
b');
INSERT INTO "names" VALUES(0,0,3,'t4');
INSERT INTO "names" VALUES(0,0,4,'t5');
INSERT INTO "names" VALUES(2,0,0,'1');
INSERT INTO "names" VALUES(2,0,1,'2');
INSERT INTO "names" VALUES(2,0,2,'3');
INSERT INTO "names" VALUES(2,0,3,'4');
INSERT INTO "names" VALUES(3,0,0,'1');
INSERT INTO "names" VALUES(3,0,1,'2');
INSERT INTO "names" VALUES(3,0,2,'3');
INSERT INTO "names" VALUES(3,0,3,'4');
INSERT INTO "names" VALUES(4,0,0,'1');
INSERT INTO "names" VALUES(4,0,1,'2');
INSERT INTO "names" VALUES(4,0,2,'3');
INSERT INTO "names" VALUES(4,0,3,'4');
INSERT INTO "names" VALUES(2,1,0,'1');
INSERT INTO "names" VALUES(2,2,0,'good');
INSERT INTO "names" VALUES(3,1,0,'1');
INSERT INTO "names" VALUES(3,2,0,'food|price');
INSERT INTO "names" VALUES(4,1,0,'1');
INSERT INTO "names" VALUES(4,2,0,'4');
INSERT INTO "names" VALUES(2,1,1,'2');
INSERT INTO "names" VALUES(2,2,1,'bad');
INSERT INTO "names" VALUES(3,1,1,'2');
INSERT INTO "names" VALUES(3,2,1,'food');
INSERT INTO "names" VALUES(4,1,1,'2');
INSERT INTO "names" VALUES(4,2,1,'2');
CREATE TABLE questions (
	code INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	PRIMARY KEY (code), 
	UNIQUE (name)
);
INSERT INTO "questions" VALUES(0,'votes');
INSERT INTO "questions" VALUES(1,'grüße');
INSERT INTO "questions" VALUES(2,'1:mood');
INSERT INTO "questions" VALUES(3,'1:topics');
INSERT INTO "questions" VALUES(4,'1:stars');
CREATE INDEX entries_of_task ON entries (question, task);
COMMIT;
